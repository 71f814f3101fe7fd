// Reads the Cookie header of a request (RFC 6265 section 4.2).

/** Returns the names and values of the cookies in a Cookie header, in the order of the header. */
export function cookiePairs(header: string): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals >= 0) pairs.push([pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]);
  }
  return pairs;
}

/**
 * Returns the distinct values of a cookie. A browser sends several values if different hosts or paths of the domain
 * have set cookies with this name. Runs for every proxied request, so it creates no strings for other cookies.
 */
export function cookieValues(header: string, name: string): string[] {
  const values: string[] = [];
  for (let start = 0, end = 0; start < header.length; start = end + 1) {
    const semicolon = header.indexOf(';', start);
    end = semicolon < 0 ? header.length : semicolon;
    const nameAt = afterBlanks(header, start);
    if (!header.startsWith(name, nameAt)) continue;
    const equals = afterBlanks(header, nameAt + name.length);
    if (header[equals] !== '=') continue;
    const value = header.slice(equals + 1, end).trim();
    if (!values.includes(value)) values.push(value);
  }
  return values;
}

/** Returns the position of the first character, at or after `start`, that is neither a space nor a tab. */
function afterBlanks(text: string, start: number): number {
  let at = start;
  while (text[at] === ' ' || text[at] === '\t') at += 1;
  return at;
}
