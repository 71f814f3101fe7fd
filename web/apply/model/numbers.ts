// Reads the numbers that people type.

/**
 * Returns the number to store; undefined for an empty text. Accepts a comma as the decimal separator, as in French. A
 * comma before exactly three digits is not accepted, because it separates thousands in English. A text that is not
 * accepted is returned unchanged, so that it is not lost and validation reports it.
 */
export function numberOf(typed: string): number | string | undefined {
  const text = typed.trim();
  if (text === '') return undefined;
  const isNumber = /^-?\d{1,15}(?:[.,]\d+)?$/.test(text) && !/,\d{3}$/.test(text);
  return isNumber ? Number(text.replace(',', '.')) : typed;
}
