// Reads the numbers that people type.

/**
 * Returns the number to store; undefined for an empty text. Accepts a comma as the decimal separator, as in French, and
 * U+2212 as the minus sign. A comma before exactly three digits is not accepted, because it separates thousands in
 * English. A text that is not accepted is returned unchanged, so that it is not lost and validation reports it.
 */
export function numberOf(typed: string): number | string | undefined {
  const text = typed.trim();
  if (text === '') return undefined;
  const isNumber = /^[-−]?\d{1,15}(?:[.,]\d+)?$/.test(text) && !/,\d{3}$/.test(text);
  return isNumber ? Number(text.replace('−', '-').replace(',', '.')) : typed;
}

/**
 * Returns whether the schema of a number says that it may be negative. Without a minimum it may be as well, but hardly
 * ever is: most such schemas are those of amounts and counts.
 */
export const allowsNegative = ({ minimum, exclusiveMinimum }: Record<string, unknown>): boolean =>
  [minimum, exclusiveMinimum].some((bound) => typeof bound === 'number' && bound < 0);
