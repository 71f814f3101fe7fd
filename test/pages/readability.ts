// Measures how hard a text is to read.
//
// English: the grade of Flesch and Kincaid (Kincaid, Fishburne, Rogers and Chissom, "Derivation of new readability
// formulas", Research Branch Report 8-75, Naval Technical Training, 1975). Grade 7 is for people aged twelve. French:
// the reading ease of Flesch as adapted by Kandel and Moles ("Application de l'indice de Flesch à la langue française",
// Cahiers Études de Radio-Télévision 19, 1958). A value of 70 or more is "fairly easy", the seventh grade.
//
// Both measures count only sentences, words and syllables, and syllables are estimated from vowels. They ignore rare
// words, the order of words and the meaning, and are unreliable for fewer than a hundred words. A text that passes may
// still be hard to understand.

export interface Counts {
  sentences: number;
  words: number;
  syllables: number;
}

export type Language = 'en' | 'fr';

/**
 * Splits texts into sentences at full stops and similar marks, but not at colons and semicolons. A title or label ends
 * a sentence, although it has no full stop.
 */
export function sentencesOf(texts: readonly string[]): string[] {
  return texts
    .flatMap((text) => text.split(/(?<=[.!?…])\s+|\n+/u))
    .map((sentence) => sentence.trim())
    .filter((sentence) => /\p{L}/u.test(sentence));
}

/**
 * Returns the words of a sentence. An apostrophe ends a word in French, as in `l’adresse`. Numbers do not count as
 * words.
 */
export function wordsOf(sentence: string, language: Language): string[] {
  return sentence.match(language === 'fr' ? /\p{L}+(?:-\p{L}+)*/gu : /\p{L}+(?:[’'-]\p{L}+)*/gu) ?? [];
}

const vowels = { en: /[aeiouy]+/g, fr: /[aeiouyéèêëàâîïôùûüœæ]+/g };
const silentEnd = {
  // Matches silent endings: a final e, -es or -ed, unless it forms a syllable as in table, boxes and wanted.
  en: /[^laeiouy]e$|[^sxzgcaeiouyh]es$|[^tdaeiouy]ed$/,
  fr: /[^aeiouyéèêëàâîïôùûüœæ](?:e|es|ent)$/,
};

/** Estimates the number of syllables from the spelling. */
export function syllablesOf(word: string, language: Language): number {
  const text = word.toLowerCase();
  const groups = text.match(vowels[language])?.length ?? 0;
  return Math.max(1, silentEnd[language].test(text) ? groups - 1 : groups);
}

export function countsOf(texts: readonly string[], language: Language): Counts {
  const sentences = sentencesOf(texts);
  const words = sentences.flatMap((sentence) => wordsOf(sentence, language));
  const syllables = words.reduce((sum, word) => sum + syllablesOf(word, language), 0);
  return { sentences: sentences.length, words: words.length, syllables };
}

export const englishGrade = ({ sentences, words, syllables }: Counts): number =>
  0.39 * (words / sentences) + 11.8 * (syllables / words) - 15.59;

export const frenchEase = ({ sentences, words, syllables }: Counts): number =>
  207 - 1.015 * (words / sentences) - 73.6 * (syllables / words);
