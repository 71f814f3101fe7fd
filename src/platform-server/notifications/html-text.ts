// Converts the HTML of a notice to plain text. Tenants write the templates of the HTML, so the time is proportional to
// its length. A tag or comment that does not end stays in the text, with everything after it.

const markupStart = /<(?:\/?[a-z]|!--)/gi;
/** A tag: its slash, name and attributes. Quotes matter only behind `=`. The alternatives begin differently. */
const tag = /<(\/?)([a-z][^\s/>]*)((?:[\s/](?:[^>=]|=(?!\s*["'])|=\s*(?:"[^"]*"|'[^']*'))*)?)>/iy;
const attribute = /([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;
const reference = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos|nbsp));/gi;
const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' };
/** Elements whose end begins a new line. */
const endsLine = /^(?:p|div|h\d|li|tr|ul|ol|table)$/;

interface Markup {
  start: number;
  end: number;
  /** The name of the element, in lower case. Empty for a comment. */
  name: string;
  isEnd: boolean;
  attributes: string;
}

/** Returns the text of HTML, in which each link is followed by its address. */
export function htmlText(html: string): string {
  const parts: string[] = [];
  let link: { href: string; label: string[] } | undefined;
  const add = (text: string) => (link?.label ?? parts).push(text);
  const endLink = () => {
    if (!link) return;
    const { href, label } = link;
    link = undefined;
    add(linkText(label.join(''), href));
  };
  let position = 0;
  for (const { start, end, name, isEnd, attributes } of markupOf(html)) {
    add(unescaped(html.slice(position, start)));
    position = end;
    if (name === 'a') {
      endLink();
      if (!isEnd) link = { href: unescaped(hrefOf(attributes)), label: [] };
    } else if (name === 'br' || (isEnd && endsLine.test(name))) add('\n');
  }
  add(unescaped(html.slice(position)));
  endLink();
  return parts.join('');
}

function* markupOf(html: string): Generator<Markup> {
  for (let end = 0; ; ) {
    markupStart.lastIndex = end;
    const start = markupStart.exec(html)?.index;
    const markup = start === undefined ? undefined : markupAt(html, start);
    if (!markup) return;
    yield markup;
    end = markup.end;
  }
}

function markupAt(html: string, start: number): Markup | undefined {
  if (html.startsWith('<!--', start)) {
    const end = html.indexOf('-->', start);
    return end < 0 ? undefined : { start, end: end + 3, name: '', isEnd: false, attributes: '' };
  }
  tag.lastIndex = start;
  const found = tag.exec(html);
  if (!found) return undefined;
  const [all, slash = '', name = '', attributes = ''] = found;
  return { start, end: start + all.length, name: name.toLowerCase(), isEnd: slash !== '', attributes };
}

function hrefOf(attributes: string): string {
  for (const [, name, double, single, bare] of attributes.matchAll(attribute))
    if (name?.toLowerCase() === 'href') return double ?? single ?? bare ?? '';
  return '';
}

function linkText(label: string, href: string): string {
  const address = href.trim();
  if (address === '') return label;
  return label.trim() === '' || label.trim() === address ? address : `${label} (${address})`;
}

/** Replaces the character references that Handlebars writes, and numeric ones. Leaves other names as they are. */
function unescaped(text: string): string {
  return text.replace(reference, (all, hex?: string, decimal?: string, name?: string) => {
    if (name !== undefined) return named[name.toLowerCase()] ?? all;
    const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0x10_ffff ? all : String.fromCodePoint(code);
  });
}
