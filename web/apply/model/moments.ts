// Converts between the local time of an input for a date with a time, and the stored text, which is in UTC.

/**
 * Returns the text to store. A text that is not a time, such as one with a year of five digits, is returned unchanged,
 * so that it is not lost and validation reports it.
 */
export function momentOf(typed: string): string | undefined {
  if (typed === '') return undefined;
  const moment = new Date(typed);
  return Number.isNaN(moment.getTime()) ? typed : moment.toISOString();
}

/** Returns the local time to show for a stored text. */
export function localTimeOf(text: string): string {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return text;
  const two = (part: number) => String(part).padStart(2, '0');
  // `getTimezoneOffset` is in whole minutes, but the offsets of historic years have seconds.
  const date = [String(moment.getFullYear()).padStart(4, '0'), two(moment.getMonth() + 1), two(moment.getDate())];
  return `${date.join('-')}T${two(moment.getHours())}:${two(moment.getMinutes())}`;
}
