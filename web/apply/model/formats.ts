// Checks the same formats as the form service: those of JSON Schema as ajv-formats defines them, and those of the
// public platform's form editor. The imported file is only a table of formats, and does not import ajv.
import { fullFormats } from 'ajv-formats/dist/formats.js';

type Check = (text: string) => boolean;

/** A time of day, as browsers submit it, or an RFC 3339 time with an offset. */
const time = /^(?:[01]\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60)(?:\.\d+)?(?:z|[+-]\d\d:?\d\d)?)?$/i;
/** A North American number, or an international one that begins with a plus sign. */
const phone = /^(?:(?:\+?1[ .-]?)?\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}|\+(?:[ ().-]?\d){7,15})$/;
/** A Canadian postal code. */
const postalCode = /^[a-z]\d[a-z][ -]?\d[a-z]\d$/i;

/** True for a Canadian social insurance number, whose last digit is a checksum (Luhn). */
function isSocialInsuranceNumber(text: string): boolean {
  if (!/^\d{3}([ -]?)\d{3}\1\d{3}$/.test(text)) return false;
  const digits = [...text.replaceAll(/\D/g, '')].map(Number);
  const weighted = digits.map((digit, index) => (index % 2 === 0 ? digit : digit * 2 - (digit > 4 ? 9 : 0)));
  const sum = weighted.reduce((total, digit) => total + digit, 0);
  return sum > 0 && sum % 10 === 0;
}

const ofTheEditor: Record<string, RegExp | Check> = {
  time,
  phone,
  'phone-number': phone,
  sin: isSocialInsuranceNumber,
  postalCode,
  'postal-code': postalCode,
};

/**
 * Returns a check for the URN of one file, or of several files separated by semicolons. `urnPrefix` has only letters,
 * digits, hyphens and colons.
 */
export function fileUrnCheck(urnPrefix: string): Check {
  const file = `${urnPrefix}:platform:file-service:v\\d:/files/[a-zA-Z0-9.-]+`;
  const pattern = new RegExp(`^${file}(?:;${file})*$`);
  return (text) => pattern.test(text);
}

/**
 * Returns the checks of texts, keyed by the name of the format. The format `file-urn` is not included. A format without
 * a check allows any text.
 */
export function formatChecks(): Record<string, Check> {
  const checks: Record<string, Check> = Object.create(null);
  for (const [name, format] of Object.entries({ ...fullFormats, ...ofTheEditor })) {
    const check = checkOf(format);
    if (check) checks[name] = check;
  }
  return checks;
}

function checkOf(format: unknown): Check | undefined {
  if (format instanceof RegExp) return (text) => text.search(format) === 0;
  if (typeof format === 'function') return (text) => format(text) === true;
  if (typeof format !== 'object' || format === null || !('validate' in format)) return undefined;
  // A format for numbers does not apply to texts.
  return 'type' in format && format.type === 'number' ? undefined : checkOf(format.validate);
}
