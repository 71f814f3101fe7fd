// Reads the Cookie header of a request (RFC 6265 section 4.2).

/** Returns names and values of the cookies in a Cookie header, in its order. */
export function cookiePairs(header: string): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals >= 0) pairs.push([pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]);
  }
  return pairs;
}

/** Returns the different values of a cookie: a browser sends several if hosts or paths of the domain share the name. */
export function cookieValues(header: string, name: string): string[] {
  const values: string[] = [];
  for (const [other, value] of cookiePairs(header)) if (other === name && !values.includes(value)) values.push(value);
  return values;
}
