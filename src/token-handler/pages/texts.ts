// The texts of the pages in English and French, in words that a twelve-year-old understands. Operators can replace them
// (`settings.ts`).
import type { PageName } from './catalogue.ts';

export const languages = ['en', 'fr'] as const;

export type Language = (typeof languages)[number];

export interface PageText {
  title: string;
  /** Says what happened. */
  happened: string;
  /** Says what the person can do. */
  advice: string;
}

export type PageTexts = Record<PageName, Record<Language, PageText>>;

export const defaultTexts: PageTexts = {
  'sign-in-expired': {
    en: {
      title: 'This sign-in has expired',
      happened: 'The sign-in took too long, or it was started in another browser.',
      advice: 'Sign in again.',
    },
    fr: {
      title: 'Cette connexion a expiré',
      happened: 'La connexion a pris trop de temps, ou elle a commencé dans un autre navigateur.',
      advice: 'Connectez-vous de nouveau.',
    },
  },
  'client-not-registered': {
    en: {
      title: 'This site is not ready yet',
      happened: 'Nobody can sign in here, because the site is not fully set up.',
      advice: 'Tell the people who run the site. Give them the reference below.',
    },
    fr: {
      title: 'Ce site n’est pas encore prêt',
      happened: 'Personne ne peut se connecter ici, car le site n’est pas entièrement configuré.',
      advice: 'Prévenez les responsables du site. Donnez-leur la référence ci-dessous.',
    },
  },
  'unknown-tenant': {
    en: {
      title: 'We do not know this organization',
      happened: 'The link that you followed names an organization that we do not know.',
      advice: 'Check the address for typing mistakes, or go back and use another link.',
    },
    fr: {
      title: 'Nous ne connaissons pas cet organisme',
      happened: 'Le lien que vous avez suivi désigne un organisme que nous ne connaissons pas.',
      advice: 'Vérifiez l’adresse, ou revenez en arrière et utilisez un autre lien.',
    },
  },
  'unknown-client': {
    en: {
      title: 'We do not know this site',
      happened: 'The link that you followed is for a site that does not exist here.',
      advice: 'Check the address for typing mistakes, or go back and use another link.',
    },
    fr: {
      title: 'Nous ne connaissons pas ce site',
      happened: 'Le lien que vous avez suivi mène à un site qui n’existe pas ici.',
      advice: 'Vérifiez l’adresse, ou revenez en arrière et utilisez un autre lien.',
    },
  },
  'identity-provider-down': {
    en: {
      title: 'Sign-in does not work right now',
      happened: 'The service that checks who you are does not work at the moment.',
      advice: 'Try again in a few minutes.',
    },
    fr: {
      title: 'La connexion ne fonctionne pas pour le moment',
      happened: 'Le service qui vérifie votre identité ne fonctionne pas en ce moment.',
      advice: 'Réessayez dans quelques minutes.',
    },
  },
  'service-unavailable': {
    en: {
      title: 'We cannot sign you in right now',
      happened: 'A part of our service does not work at the moment.',
      advice: 'Try again in a few minutes.',
    },
    fr: {
      title: 'Nous ne pouvons pas vous connecter pour le moment',
      happened: 'Une partie de notre service ne fonctionne pas en ce moment.',
      advice: 'Réessayez dans quelques minutes.',
    },
  },
  'rate-limited': {
    en: {
      title: 'Too many tries',
      happened: 'There were too many sign-ins from your network in a short time.',
      advice: 'Wait a little, then try again.',
    },
    fr: {
      title: 'Trop de tentatives',
      happened: 'Il y a eu trop de connexions depuis votre réseau en peu de temps.',
      advice: 'Attendez un peu, puis réessayez.',
    },
  },
  'invalid-link': {
    en: {
      title: 'This link does not work',
      happened: 'The link that you followed is not complete, or has a mistake in it.',
      advice: 'Go back and try again. If it still does not work, tell the people who run the site.',
    },
    fr: {
      title: 'Ce lien ne fonctionne pas',
      happened: 'Le lien que vous avez suivi est incomplet ou contient une erreur.',
      advice: 'Revenez en arrière et réessayez. Si cela ne fonctionne toujours pas, prévenez les responsables du site.',
    },
  },
  'sign-out-failed': {
    en: {
      title: 'You may still be signed in',
      happened: 'We could not sign you out.',
      advice:
        'Try signing out again. On a computer that other people use, close all windows of the browser before you leave.',
    },
    fr: {
      title: 'Votre session est peut-être encore ouverte',
      happened: 'Nous n’avons pas pu vous déconnecter.',
      advice:
        'Essayez encore de vous déconnecter. Sur un ordinateur que d’autres utilisent, fermez toutes les fenêtres du navigateur avant de partir.',
    },
  },
  general: {
    en: {
      title: 'Something went wrong',
      happened: 'We could not finish your sign-in.',
      advice: 'Try again. If it still does not work, tell the people who run the site. Give them the reference below.',
    },
    fr: {
      title: 'Un problème est survenu',
      happened: 'Nous n’avons pas pu terminer votre connexion.',
      advice:
        'Réessayez. Si cela ne fonctionne toujours pas, prévenez les responsables du site. Donnez-leur la référence ci-dessous.',
    },
  },
};

/** The words that all pages share. */
export interface SharedWords {
  /** "In" and the name of the language, in that language, such as "En français". */
  inThisLanguage: string;
  signInAgain: string;
  tryAgain: string;
  startPage: string;
  site: string;
  organization: string;
  reference: string;
  /** Returns the sentence that says when the next attempt may succeed. */
  wait(minutes: number): string;
}

export const sharedWords: Record<Language, SharedWords> = {
  en: {
    inThisLanguage: 'In English',
    signInAgain: 'Sign in again',
    tryAgain: 'Try again',
    startPage: 'Go to the start page',
    site: 'Site',
    organization: 'Organization',
    reference: 'Reference',
    wait: (minutes) =>
      `It will work again in ${time(minutes, { minute: 'one minute', minutes: 'minutes', hours: 'hours' })}.`,
  },
  fr: {
    inThisLanguage: 'En français',
    signInAgain: 'Se connecter de nouveau',
    tryAgain: 'Réessayer',
    startPage: 'Aller à la page d’accueil',
    site: 'Site',
    organization: 'Organisme',
    reference: 'Référence',
    wait: (minutes) =>
      `Cela fonctionnera de nouveau dans ${time(minutes, { minute: 'une minute', minutes: 'minutes', hours: 'heures' })}.`,
  },
};

function time(minutes: number, words: { minute: string; minutes: string; hours: string }): string {
  if (minutes === 1) return words.minute;
  return minutes < 120 ? `${minutes} ${words.minutes}` : `${Math.ceil(minutes / 60)} ${words.hours}`;
}
