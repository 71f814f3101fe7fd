/**
 * Returns the text without the slashes at its end. A regular expression such as `/\/+$/` would take quadratic time for
 * many slashes that are followed by another character, and tenants write some of these texts.
 */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}
