// Asks for a date in three inputs: day, month and year.
import { useState } from 'preact/hooks';
import { GroupedField } from '../../shared/field.tsx';
import { useForm } from '../form-context.ts';
import { autofillOf } from '../model/autofill.ts';
import type { ControlProps } from './control-props.ts';

interface DateParts {
  day: string;
  month: string;
  year: string;
}

export function DateControl({ field, parts, value, set }: ControlProps) {
  const { texts } = useForm();
  const [typed, setTyped] = useState<DateParts>({ day: '', month: '', year: '' });
  const shown = joined(typed) === value ? typed : split(value);
  const change = (part: keyof DateParts, text: string) => {
    const next = { ...shown, [part]: text.trim() };
    setTyped(next);
    set(joined(next));
  };
  const birthday = autofillOf(field) === 'bday';
  return (
    <GroupedField {...parts} hint={parts.hint ?? texts.fields.dateHint}>
      <div class="parts">
        {(['day', 'month', 'year'] as const).map((part) => (
          <div key={part}>
            <label for={`${parts.id}-${part}`}>{texts.fields[part]}</label>
            <input
              id={`${parts.id}-${part}`}
              class="shorter"
              type="text"
              inputMode="numeric"
              autocomplete={birthday ? `bday-${part}` : 'off'}
              aria-invalid={parts.error === undefined ? undefined : true}
              value={shown[part]}
              onInput={(event) => change(part, event.currentTarget.value)}
            />
          </div>
        ))}
      </div>
    </GroupedField>
  );
}

/**
 * Joins the parts of a date. Also joins an incomplete date, so that the typed parts are kept and validation reports the
 * incomplete date.
 */
function joined({ day, month, year }: DateParts): string | undefined {
  if (day === '' && month === '' && year === '') return undefined;
  const two = (text: string) => (/^\d$/.test(text) ? `0${text}` : text);
  return `${year}-${two(month)}-${two(day)}`;
}

function split(value: unknown): DateParts {
  const [year = '', month = '', day = ''] = typeof value === 'string' ? value.split('-') : [];
  const plain = (text: string) => text.replace(/^0(?=\d$)/, '');
  return { day: plain(day), month: plain(month), year };
}
