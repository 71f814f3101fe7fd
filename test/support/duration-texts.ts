// Generates texts that are durations or almost durations. All durations are shorter than a century.
import fc from 'fast-check';

const digits = fc.stringMatching(/^\d{1,3}$/);
const part = (unit: string) =>
  fc.oneof(
    fc.constant(''),
    digits.map((number) => number + unit),
  );
const seconds = fc.oneof(
  part('S'),
  fc.tuple(digits, digits).map(([whole, fraction]) => `${whole}.${fraction}S`),
);

/** Texts whose parts are in the right order. Any of the parts may be missing, even all. */
const ordered = fc
  .tuple(part('W'), part('D'), fc.constantFrom('', 'T'), part('H'), part('M'), seconds)
  .map((parts) => `P${parts.join('')}`);
const pieces = [
  'P',
  'T',
  '1W',
  '02D',
  '3H',
  '4M',
  '5S',
  '6.7S',
  '.8S',
  '9.S',
  '1Y',
  '2',
  '-',
  ' ',
  '\n',
  ',',
  'd',
  '٣D',
];
const anyOrder = fc.array(fc.constantFrom(...pieces), { maxLength: 6 }).map((parts) => parts.join(''));

export const durationTexts = fc.oneof(
  ordered,
  anyOrder,
  anyOrder.map((text) => `P${text}`),
);
