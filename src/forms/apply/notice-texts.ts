// The texts of the pages behind the links of the warning mail, in English and French.
import type { Language } from '../forms/form.ts';

/** A page that only shows a message. */
export interface Message {
  title: string;
  text: string;
}

export interface NoticeTexts {
  keep: Message & { button: string };
  /**
   * The message after the draft was kept. In `until`, `DATE` stands for the day on which the draft will be locked. A
   * draft without such a day, for example on hold, gets only `text`.
   */
  kept: Message & { until: string };
  remove: Message & { button: string };
  /** In the text of this page, `LIFETIME` stands for the time for which a code works. */
  code: Message & { label: string; button: string; again: string; missing: string; wrong: string; tooMany: string };
  removed: Message;
  /** The name of the other language, written in that language. */
  otherLanguage: string;
  /** A prefix of the title of a page that reports an error. */
  error: string;
  problems: Record<'invalid' | 'locked' | 'submitted' | 'gone' | 'held' | 'busy' | 'unavailable', Message>;
}

export const noticeTexts: Record<Language, NoticeTexts> = {
  en: {
    keep: {
      title: 'Keep your draft',
      text: 'Your draft will be locked soon, because you have not opened it for some time. Press the button to keep it.',
      button: 'Keep my draft',
    },
    kept: {
      title: 'Your draft is kept',
      until: 'It will not be locked before DATE.',
      text: 'You do not have to do anything now.',
    },
    remove: {
      title: 'Delete your draft',
      text: 'This deletes your draft and your data. You cannot undo it. To make sure that it is you, we first send you a code.',
      button: 'Send me a code',
    },
    code: {
      title: 'Enter the code',
      text: 'We sent a code to the address that you gave us. It works for LIFETIME. If you do not get it, look in your spam folder, or wait a minute and ask for another.',
      label: 'Code',
      button: 'Delete my draft and my data',
      again: 'Send me another code',
      missing: 'Enter the code.',
      wrong: 'The code is wrong or too old. Check it, or ask for another.',
      tooMany: 'You asked for too many codes, or entered too many wrong ones. Wait a while, then try again.',
    },
    removed: { title: 'Your draft is deleted', text: 'Your draft and your data are deleted. You can close this page.' },
    otherLanguage: 'Français',
    error: 'Error: ',
    problems: {
      invalid: {
        title: 'This link does not work',
        text: 'Part of the address may be missing. Open the link in the mail again.',
      },
      locked: {
        title: 'Your draft is locked',
        text: 'You cannot change it here any more. If you still need it, contact the office that you are applying to: they can unlock it.',
      },
      submitted: {
        title: 'This is no longer a draft',
        text: 'You have submitted it, so it will not be locked, and you cannot delete it here.',
      },
      gone: { title: 'This draft does not exist any more', text: 'It was deleted. You can start again.' },
      held: { title: 'Your draft cannot be deleted now', text: 'Contact the office that you are applying to.' },
      busy: { title: 'Please wait a moment', text: 'There were too many requests. Try again in a few minutes.' },
      unavailable: {
        title: 'That did not work',
        text: 'Something failed on our side. We do not know whether your draft was changed. Try again in a few minutes.',
      },
    },
  },
  fr: {
    keep: {
      title: 'Garder votre brouillon',
      text: 'Votre brouillon sera bientôt verrouillé, car vous ne l’avez pas ouvert depuis un certain temps. Appuyez sur le bouton pour le garder.',
      button: 'Garder mon brouillon',
    },
    kept: {
      title: 'Votre brouillon est gardé',
      until: 'Il ne sera pas verrouillé avant le DATE.',
      text: 'Vous n’avez rien à faire pour le moment.',
    },
    remove: {
      title: 'Supprimer votre brouillon',
      text: 'Votre brouillon et vos données seront supprimés. Vous ne pourrez pas revenir en arrière. Pour nous assurer que c’est bien vous, nous vous envoyons d’abord un code.',
      button: 'Envoyez-moi un code',
    },
    code: {
      title: 'Entrez le code',
      text: 'Nous avons envoyé un code à l’adresse que vous nous avez donnée. Il est valable LIFETIME. Si vous ne le recevez pas, regardez dans vos courriels indésirables, ou attendez une minute et demandez-en un autre.',
      label: 'Code',
      button: 'Supprimer mon brouillon et mes données',
      again: 'Envoyez-moi un autre code',
      missing: 'Entrez le code.',
      wrong: 'Le code est incorrect ou trop ancien. Vérifiez-le, ou demandez-en un autre.',
      tooMany: 'Vous avez demandé trop de codes, ou entré trop de codes incorrects. Attendez un peu, puis réessayez.',
    },
    removed: {
      title: 'Votre brouillon est supprimé',
      text: 'Votre brouillon et vos données sont supprimés. Vous pouvez fermer cette page.',
    },
    otherLanguage: 'English',
    error: 'Erreur : ',
    problems: {
      invalid: {
        title: 'Ce lien ne fonctionne pas',
        text: 'Il manque peut-être une partie de l’adresse. Ouvrez de nouveau le lien du courriel.',
      },
      locked: {
        title: 'Votre brouillon est verrouillé',
        text: 'Vous ne pouvez plus le changer ici. Si vous en avez encore besoin, écrivez au bureau qui le gère : il peut le déverrouiller.',
      },
      submitted: {
        title: 'Ce n’est plus un brouillon',
        text: 'Vous l’avez envoyé : il ne sera pas verrouillé, et vous ne pouvez pas le supprimer ici.',
      },
      gone: { title: 'Ce brouillon n’existe plus', text: 'Il a été supprimé. Vous pouvez recommencer.' },
      held: {
        title: 'Votre brouillon ne peut pas être supprimé maintenant',
        text: 'Adressez-vous au bureau concerné.',
      },
      busy: { title: 'Attendez un instant', text: 'Il y a eu trop de demandes. Réessayez dans quelques minutes.' },
      unavailable: {
        title: 'Cela n’a pas fonctionné',
        text: 'Une erreur est survenue de notre côté. Nous ne savons pas si votre brouillon a été modifié. Réessayez dans quelques minutes.',
      },
    },
  },
};
