// The languages of the pages. Each language has one file with all texts.
import { type EnglishTexts, english } from './en.ts';
import { french } from './fr.ts';

export type Language = 'en' | 'fr';
export type Texts = EnglishTexts;
/** A text that is shown in the current language, also if the person changes the language later. */
export type Message = (texts: Texts) => string;

const all: Record<Language, Texts> = { en: english, fr: french };

export const textsOf = (language: Language): Texts => all[language];

/**
 * Returns English or French: the language that the browser prefers, if it is available; otherwise the first available
 * language.
 */
export function preferredLanguage(preferred: readonly string[], available: readonly Language[]): Language {
  const found = preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag) => tag === 'en' || tag === 'fr');
  return available.find((language) => language === found) ?? available[0] ?? 'en';
}
