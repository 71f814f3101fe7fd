// Finds out what a question asks about the person, so that browsers and assistive software can fill it in or explain it
// (WCAG 2.2, 1.3.5).
import { textOf } from './elements.ts';
import type { Field } from './fields.ts';
import type { Path } from './json.ts';

const byFormat: Record<string, string> = {
  email: 'email',
  phone: 'tel',
  'phone-number': 'tel',
  postalCode: 'postal-code',
  'postal-code': 'postal-code',
};

/** The members of the platform's shared schemas for names, addresses and telephone numbers. */
const byName: Record<string, string> = {
  firstName: 'given-name',
  middleName: 'additional-name',
  lastName: 'family-name',
  addressLine1: 'address-line1',
  addressLine2: 'address-line2',
  municipality: 'address-level2',
  postalCode: 'postal-code',
  phoneNumber: 'tel',
};

/**
 * Returns the value of the attribute `autocomplete`: the option of the control, otherwise what the format or the name
 * of the property says. Format and name say nothing in a list, because its items may be other people.
 */
export function autofillOf({ options, path, place }: Pick<Field, 'options' | 'path' | 'place'>): string | undefined {
  const { format } = place.schema;
  const isInList = path.some((part) => /^\d+$/.test(part));
  const guessed = isInList ? undefined : (byFormat[String(format)] ?? named(path, format === 'date'));
  return textOf(options.autocomplete) ?? guessed;
}

function named(path: Path, isDate: boolean): string | undefined {
  const name = path.at(-1) ?? '';
  return isDate && /birth/i.test(name) ? 'bday' : byName[name];
}
