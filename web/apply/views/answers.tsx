// Shows the answers of a form as text, in the summary before submission and on the receipt.

import { labelOf } from '../controls/choice-control.tsx';
import { useForm } from '../form-context.ts';
import { type Field, yesNoChoices } from '../model/fields.ts';
import { isEqual, valueAt } from '../model/json.ts';
import { useChoices } from '../registers.ts';

interface AnswersProps {
  fields: readonly Field[];
  /** Called when the person wants to change an answer. Undefined if answers can no longer be changed. */
  change?: (field: Field) => void;
}

export function Answers({ fields, change }: AnswersProps) {
  const { texts } = useForm();
  return (
    <dl class="answers">
      {fields.map((field) => (
        <div key={field.path.join('/')}>
          <dt>{field.label}</dt>
          <dd>
            <Answer field={field} />
          </dd>
          {change && (
            <dd>
              <button type="button" class="link" onClick={() => change(field)}>
                {texts.check.change}
                <span class="visually-hidden">{texts.check.changeOf(field.label)}</span>
              </button>
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

export function Answer({ field, given }: { field: Field; given?: unknown }) {
  const { data, registers, texts, language, files } = useForm();
  const loaded = useChoices(field, registers).choices;
  const choices = field.kind === 'yes-no' ? yesNoChoices(field, texts.check) : loaded;
  const value = given ?? valueAt(data, field.path);
  const shown = (one: unknown): string => {
    const choice = choices?.find((candidate) => isEqual(candidate.value, one));
    return choice ? labelOf(choice, language) : plainText(one, texts.check, files);
  };
  if (value === undefined || value === null || value === '') return <>{texts.check.none}</>;
  if (field.kind === 'date' && typeof value === 'string') return <>{longDate(value, texts.locale)}</>;
  if (field.kind === 'date-time' && typeof value === 'string') return <>{longMoment(value, texts.locale)}</>;
  if (field.kind === 'file') return <>{String(value).split(';').map(shown).join('\n')}</>;
  return <>{Array.isArray(value) ? value.map(shown).join('\n') : shown(value)}</>;
}

/** Returns an answer as text: the name of a file instead of its URN. */
export function plainText(value: unknown, words: { yes: string; no: string }, files: Record<string, string>): string {
  if (value === true) return words.yes;
  if (value === false) return words.no;
  if (value === null) return '';
  // Only the page for conflicts shows an item of a list as one answer.
  if (typeof value === 'object')
    return Object.values(value)
      .map((one) => plainText(one, words, files))
      .join(', ');
  const nameOf = (text: string) => Object.entries(files).find(([, urn]) => urn === text)?.[0] ?? text;
  return String(value).split(';').map(nameOf).join(';');
}

/** Formats a time as the person entered it: in the time zone of the browser. */
function longMoment(text: string, locale: string): string {
  const moment = new Date(text);
  const format = { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23' } as const;
  return Number.isNaN(moment.getTime()) ? text : moment.toLocaleString(locale, format);
}

/** Formats a date. Returns the text unchanged if it is not a real date, such as February 30. */
function longDate(text: string, locale: string): string {
  const date = new Date(`${text}T12:00:00Z`);
  // `Date` turns February 30 into March 2.
  const isReal = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(`${text}T`);
  return isReal ? date.toLocaleDateString(locale, { dateStyle: 'long', timeZone: 'UTC' }) : text;
}
