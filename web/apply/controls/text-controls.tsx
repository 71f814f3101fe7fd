// The inputs for texts, numbers and times.
import { useState } from 'preact/hooks';
import { described } from '../../shared/field.tsx';
import { autofillOf } from '../model/autofill.ts';
import { localTimeOf, momentOf } from '../model/moments.ts';
import { allowsNegative, numberOf } from '../model/numbers.ts';
import type { ControlProps } from './control-props.ts';

/** Types of inputs, keyed by the format of the text. They control the keyboard of phones. */
const types: Record<string, string> = { email: 'email', phone: 'tel', 'phone-number': 'tel', uri: 'url' };

export function TextControl({ field, parts, value, set }: ControlProps) {
  const text = value === undefined || value === null ? '' : String(value);
  const common = { id: parts.id, ...described(parts), autocomplete: autofillOf(field) };
  const input = (event: { currentTarget: { value: string } }) => {
    const typed = event.currentTarget.value;
    set(typed === '' ? undefined : typed);
  };
  if (field.kind === 'textarea') return <textarea {...common} rows={5} value={text} onInput={input} />;
  if (field.kind === 'time') return <input {...common} type="time" class="short" value={text} onInput={input} />;
  if (field.kind === 'date-time') return <MomentInput {...common} text={text} set={set} />;
  // Preact's types accept only a constant as the type of an input, not a computed text.
  const type = (types[String(field.place.schema.format)] ?? 'text') as 'text';
  return <input {...common} type={type} value={text} onInput={input} />;
}

/** An input for a date with a time. The form stores the time in UTC; people see it in their own time zone. */
function MomentInput({ text, set, ...common }: { id: string; text: string; set(value: unknown): void }) {
  const [typed, setTyped] = useState('');
  const local = (momentOf(typed) ?? '') === text ? typed : localTimeOf(text);
  const input = (event: { currentTarget: HTMLInputElement }) => {
    setTyped(event.currentTarget.value);
    set(momentOf(event.currentTarget.value));
  };
  return <input {...common} type="datetime-local" value={local} onInput={input} />;
}

/**
 * An input for numbers. A text that is not a number is stored unchanged, so that it is not lost and validation reports
 * it.
 */
export function NumberControl({ field, parts, value, set }: ControlProps) {
  const [typed, setTyped] = useState('');
  const text = numberOf(typed) === value ? typed : value === undefined || value === null ? '' : String(value);
  const input = (event: { currentTarget: HTMLInputElement }) => {
    setTyped(event.currentTarget.value);
    set(numberOf(event.currentTarget.value));
  };
  // The number keyboards of some phones have no minus sign.
  const mode = allowsNegative(field.place.schema) ? 'text' : field.kind === 'integer' ? 'numeric' : 'decimal';
  return (
    <input
      id={parts.id}
      {...described(parts)}
      autocomplete={autofillOf(field)}
      type="text"
      inputMode={mode}
      class="short"
      value={text}
      onInput={input}
    />
  );
}
