// Tests that a person aged twelve can read all texts for applicants, by a measure that counts words and syllables.
// readability.ts describes the limits of this measure.
import Handlebars from 'handlebars';
import { describe, expect, it } from 'vitest';
import { noticeTexts } from '../../src/forms/apply/notice-texts.ts';
import { english as mailsInEnglish } from '../../src/forms/notices/texts-en.ts';
import { french as mailsInFrench } from '../../src/forms/notices/texts-fr.ts';
import { codeMail } from '../../src/platform-server/notifications/code-mail.ts';
import { english } from '../../web/apply/texts/en.ts';
import { french } from '../../web/apply/texts/fr.ts';
import { countsOf, englishGrade, frenchEase, type Language, sentencesOf, syllablesOf, wordsOf } from './readability.ts';

/**
 * Returns all texts of a tree. Calls a function that returns a text with short arguments: a label and a number, or only
 * a number.
 */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value === 'function') return [value.length > 1 ? value('Name', 3) : value('3')];
  return Object.values(value ?? {}).flatMap(textsIn);
}

const handlebars = Handlebars.create();
handlebars.registerHelper('formatDate', (_date, { hash }) => (hash.locale === 'fr-CA' ? '4 mai' : 'May 4'));
const form = { definition: { name: 'Permit' }, formDraftUrl: 'x', reference: '7' };
const payload = {
  form,
  definition: { name: 'Permit' },
  wasDraft: true,
  lockOn: 'x',
  deleteOn: 'x',
  keepUrl: 'x',
  deleteUrl: 'x',
};
const plainText = (template: string) =>
  handlebars
    .compile(template)({ event: { payload, timestamp: 'x' } })
    .replaceAll(/<[^>]+>/g, ' ');

const mails = (notices: typeof mailsInEnglish, language: Language) => {
  const { subject, text } = codeMail({ to: { name: '', address: '' }, code: '', reason: '', language });
  return [...textsIn(notices).map(plainText), subject, text];
};

/** Groups of texts that people read together. Each group has a hundred words or more. */
const pages = (texts: typeof english) => {
  const { start, saved, leave, deletion, check, receipt, code, conflict, states, fields, files, errors, steps } = texts;
  return {
    'the start page': textsIn(start),
    'the pages of the form': textsIn([steps, saved, leave, deletion, check, receipt]),
    'the pages for a code and for a conflict': textsIn([code, conflict]),
    'the pages without a form': textsIn(states),
    'questions, files and errors': textsIn([fields, files, errors]),
  };
};

const all = [
  ...Object.entries(pages(english)).map(([name, texts]) => ({ name, language: 'en' as const, texts })),
  { name: 'the pages behind links in mails', language: 'en' as const, texts: textsIn(noticeTexts.en) },
  { name: 'the mails and text messages', language: 'en' as const, texts: mails(mailsInEnglish, 'en') },
  ...Object.entries(pages(french)).map(([name, texts]) => ({ name, language: 'fr' as const, texts })),
  { name: 'the pages behind links in mails', language: 'fr' as const, texts: textsIn(noticeTexts.fr) },
  { name: 'the mails and text messages', language: 'fr' as const, texts: mails(mailsInFrench, 'fr') },
];

function isEasy(texts: readonly string[], language: Language): boolean {
  const counts = countsOf(texts, language);
  return language === 'en' ? englishGrade(counts) <= 7 : frenchEase(counts) >= 70;
}

const mostWords = 20;

describe.each(all)('$name, in $language', ({ language, texts }) => {
  it('can be read at the age of twelve', () => {
    expect(countsOf(texts, language).words).toBeGreaterThan(100);
    expect(isEasy(texts, language)).toBe(true);
  });

  it('has no message of ten words or more that is harder than that', () => {
    const isLong = (text: string) => countsOf([text], language).words >= 10;
    expect(texts.filter((text) => isLong(text) && !isEasy([text], language))).toEqual([]);
  });

  it(`has no sentence of more than ${mostWords} words`, () => {
    const long = sentencesOf(texts).filter((sentence) => wordsOf(sentence, language).length > mostWords);
    expect(long).toEqual([]);
  });
});

describe('the measure', () => {
  it.each([
    ['en', { we: 1, table: 2, boxes: 2, wanted: 2, locked: 1, email: 2, answers: 2, application: 4, office: 2 }],
    ['fr', { nous: 1, formulaire: 3, réponses: 2, supprimer: 3, verrouillé: 3, adresse: 2, peuvent: 1, le: 1 }],
  ] as const)('counts syllables in %s', (language, words) => {
    const counted = Object.keys(words).map((word) => [word, syllablesOf(word, language)]);
    expect(Object.fromEntries(counted)).toEqual(words);
  });

  it('finds legal language too hard', () => {
    const legal = [
      'Notwithstanding the aforementioned provisions, applications submitted subsequent to the expiration of the applicable period shall be considered inadmissible.',
    ];
    expect(englishGrade(countsOf(legal, 'en'))).toBeGreaterThan(15);
    const juridique = [
      'Nonobstant les dispositions susmentionnées, les demandes déposées postérieurement à l’expiration de la période applicable seront considérées irrecevables.',
    ];
    expect(frenchEase(countsOf(juridique, 'fr'))).toBeLessThan(40);
  });
});
