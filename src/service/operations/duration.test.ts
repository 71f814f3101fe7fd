// Tests which texts are durations, and how long they are.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { durationTexts } from '../../../test/support/duration-texts.ts';
import { parseConfig } from './config.ts';
import { isoDuration, parseDuration } from './duration.ts';

/** True if the text is a duration. This check does not use the patterns under test. */
function isWellFormed(text: string): boolean {
  const [date = '', time, ...more] = text.slice(1).split('T');
  const hasParts = time === undefined ? date !== '' : time !== '';
  return text.startsWith('P') && more.length === 0 && hasParts && areParts(date, 'WD') && areParts(time ?? '', 'HMS');
}

/** True if the text consists of numbers with these units, in this order. Units may be missing. */
function areParts(text: string, units: string): boolean {
  let rest = text;
  for (const unit of units) {
    const end = rest.indexOf(unit);
    if (end < 0) continue;
    const numbers = unit === 'S' ? rest.slice(0, end).split('.') : [rest.slice(0, end)];
    const isNumber = numbers.length <= 2 && numbers.every((one) => one !== '' && [...one].every(isDigit));
    if (!isNumber) return false;
    rest = rest.slice(end + 1);
  }
  return rest === '';
}

const isDigit = (character: string) => '0123456789'.includes(character);

describe('a duration', () => {
  it('is ISO 8601 in weeks, days, hours, minutes and seconds, as milliseconds', () => {
    const read = (text: string) => parseDuration(text);
    expect(['P15D', 'PT10M', 'P1W', 'PT0S', 'P1DT2H3M4.5S', 'PT0.001S'].map(read)).toEqual([
      1_296_000_000, 600_000, 604_800_000, 0, 93_784_500, 1,
    ]);
  });

  it('is rejected without a unit, with years or months, negative, in another order, or beyond a century', () => {
    const refused = [
      '',
      'P',
      'PT',
      'P1DT',
      '15',
      '15D',
      'P1Y',
      'P1M',
      '-P1D',
      'P-1D',
      'PT1D',
      'PT1S1M',
      'P1D ',
      'p1d',
      'P40000D',
    ];
    expect(refused.filter((text) => parseDuration(text) !== undefined)).toEqual([]);
  });

  it('of any whole number of seconds within a century is exact', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 3_155_760_000 }),
        (seconds) => parseDuration(`PT${seconds}S`) === seconds * 1_000,
      ),
    );
  });

  it('is any text that has its parts in order and ends with a part, and no other', () => {
    fc.assert(
      fc.property(durationTexts, (text) => {
        expect(parseDuration(text) !== undefined).toBe(isWellFormed(text));
      }),
      { numRuns: 2_000 },
    );
  });

  it('may have a maximum', () => {
    const schema = z.object({ WAIT: isoDuration('PT1S', { max: 'PT1H' }) });
    expect(parseConfig(schema, { WAIT: 'PT60M' }).WAIT).toBe(3_600_000);
    expect(() => parseConfig(schema, { WAIT: 'PT61M' })).toThrow('WAIT: must be at most PT1H');
  });
});
