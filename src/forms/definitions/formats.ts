// The formats that the public platform's form editor uses in addition to those of JSON Schema.
import type { Format } from 'ajv';

/**
 * Returns the formats. `urnPrefix` contains only letters, digits, hyphens and colons, so it needs no escaping in a
 * pattern.
 */
export function formFormats(urnPrefix: string): Record<string, Format> {
  const file = `${urnPrefix}:platform:file-service:v\\d:/files/[a-zA-Z0-9.-]+`;
  return {
    // A time of day, as browsers submit it, or an RFC 3339 time with an offset.
    time: /^(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-]\d\d:?\d\d)?)?$/i,
    // One file URN, or several separated by semicolons.
    'file-urn': new RegExp(`^${file}(?:;${file})*$`),
    phone,
    'phone-number': phone,
    sin: { type: 'string', validate: isSocialInsuranceNumber },
    postalCode,
    'postal-code': postalCode,
    // These formats accept any string. The form editor uses them only to choose an input control.
    computed: true,
    integer: true,
    number: true,
  };
}

/** A North American telephone number, or an international number that begins with a plus sign. */
const phone = /^(?:(?:\+?1[ .-]?)?\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}|\+(?:[ ().-]?\d){7,15})$/;
/** A Canadian postal code. */
const postalCode = /^[a-z]\d[a-z][ -]?\d[a-z]\d$/i;

/** The last digit of a Canadian social insurance number is a checksum (Luhn). */
function isSocialInsuranceNumber(text: string): boolean {
  if (!/^\d{3}([ -]?)\d{3}\1\d{3}$/.test(text)) return false;
  const digits = [...text.replaceAll(/\D/g, '')].map(Number);
  const weighted = digits.map((digit, index) => (index % 2 === 0 ? digit : digit * 2 - (digit > 4 ? 9 : 0)));
  const sum = weighted.reduce((total, digit) => total + digit, 0);
  return sum > 0 && sum % 10 === 0;
}
