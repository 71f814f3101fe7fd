// The texts of the notices in French.
import {
  deadline,
  frenchDate,
  link,
  type NoticeName,
  type NoticeText,
  name,
  onDate,
  ownLink,
  plainLink,
  reference,
} from './text-parts.ts';

const form = `« ${name('event.payload.form.definition', 'demande')} »`;
const kind = '{{#if event.payload.wasDraft}}brouillon{{else}}formulaire{{/if}}';
const deletedForm = `${kind} « ${name('event.payload.definition', 'demande')} »`;
const on = (member: string) => onDate(`event.payload.${member}`, 'le', `${frenchDate} ${deadline}`);

export const french: Record<NoticeName, NoticeText> = {
  created: {
    subject: `Votre brouillon ${form} est enregistré`,
    heading: 'Brouillon enregistré',
    paragraphs: [
      `<p>Nous avons enregistré un brouillon de votre formulaire ${form}. Il n’est pas encore envoyé.</p>`,
      '<p>Vous pouvez y revenir et le terminer. Si vous ne l’ouvrez pas pendant un certain temps, il sera verrouillé, puis supprimé. Nous vous écrirons avant.</p>',
      link('Continuer votre brouillon'),
    ],
    sms: `Votre brouillon ${form} est enregistré. Il n’est pas encore envoyé.${plainLink}`,
  },
  expiring: {
    subject: `Votre brouillon ${form} sera bientôt verrouillé`,
    heading: 'Brouillon bientôt verrouillé',
    paragraphs: [
      `<p>Vous n’avez pas ouvert votre brouillon ${form} depuis un certain temps. Il sera verrouillé${on('lockOn')}.</p>`,
      `<p>Pour le garder, ouvrez-le avant. Un brouillon verrouillé ne peut plus être ouvert et il est supprimé{{#if event.payload.deleteOn}}${on('deleteOn')}{{else}} plus tard{{/if}}.</p>`,
      link('Ouvrir votre brouillon'),
      ownLink('keepUrl', 'Vous n’avez pas le temps maintenant?', 'Garder mon brouillon'),
      ownLink('deleteUrl', 'Vous n’en avez plus besoin?', 'Supprimer mon brouillon et mes données'),
    ],
    sms: `Votre brouillon ${form} sera verrouillé${on('lockOn')}. Ouvrez-le avant pour le garder.${plainLink}`,
  },
  locked: {
    subject: `Votre brouillon ${form} est verrouillé`,
    heading: 'Brouillon verrouillé',
    paragraphs: [
      `<p>Vous n’avez pas ouvert votre brouillon ${form} depuis un certain temps : il est maintenant verrouillé. Vous ne pouvez ni l’ouvrir ni l’envoyer.</p>`,
      `<p>Il sera supprimé${on('deleteOn')}, avec tout ce que vous y avez écrit.</p>`,
      '<p>En avez-vous encore besoin? Écrivez avant cette date au bureau qui le gère : il peut le déverrouiller.</p>',
    ],
    sms: `Votre brouillon ${form} est verrouillé. Il sera supprimé${on('deleteOn')}. Pour le garder, écrivez au bureau qui le gère.`,
  },
  unlocked: {
    subject: `Votre brouillon ${form} est déverrouillé`,
    heading: 'Brouillon déverrouillé',
    paragraphs: [
      `<p>Votre brouillon ${form} est déverrouillé. Vous pouvez l’ouvrir de nouveau, le terminer et l’envoyer.</p>`,
      link('Continuer votre brouillon'),
    ],
    sms: `Votre brouillon ${form} est déverrouillé. Vous pouvez le terminer et l’envoyer.${plainLink}`,
  },
  toDraft: {
    subject: `Votre formulaire ${form} est à modifier`,
    heading: 'De nouveau un brouillon',
    paragraphs: [
      `<p>Votre formulaire ${form} vous a été renvoyé et est de nouveau un brouillon. Il n’est plus considéré comme envoyé.</p>`,
      '<p>Faites les changements nécessaires et envoyez-le de nouveau.</p>',
      link('Ouvrir votre brouillon'),
    ],
    sms: `Votre formulaire ${form} vous a été renvoyé et est de nouveau un brouillon. Faites les changements nécessaires et envoyez-le de nouveau.${plainLink}`,
  },
  submitted: {
    subject: `Nous avons reçu votre formulaire ${form}`,
    heading: 'Reçu',
    paragraphs: [
      `<p>Nous avons reçu votre formulaire ${form}${onDate('event.timestamp', 'le', frenchDate)}.</p>`,
      `<p>Vous n’avez rien à faire pour le moment. Votre numéro de référence est ${reference}.</p>`,
    ],
    sms: `Nous avons reçu votre formulaire ${form}. Numéro de référence : ${reference}.`,
  },
  deleted: {
    subject: `Votre ${deletedForm} est supprimé`,
    heading: 'Supprimé',
    paragraphs: [
      `<p>Votre ${deletedForm} est supprimé, avec les renseignements que vous y aviez inscrits. Il ne peut pas être récupéré.</p>`,
      '<p>Votre adresse est supprimée aussi. C’est donc notre dernier message. Si vous voulez encore faire une demande, commencez de nouveau.</p>',
    ],
    sms: `Votre ${deletedForm} est supprimé, avec les renseignements que vous y aviez inscrits. Ceci est notre dernier message à ce sujet.`,
  },
};
