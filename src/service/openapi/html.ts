// Builds HTML pages. Escapes every value that is not Markup.

/** Safe HTML, which is not escaped again. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns a whole page. `styles` is its only stylesheet; `bodyClass` is the class of its body element. */
export function page({ title, styles, body, bodyClass, language = 'en' }: PageContent): string {
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${new Markup(styles)}</style>
</head>
<body${bodyClass !== undefined && html` class="${bodyClass}"`}>
${body}
</body>
</html>
`.text;
}

interface PageContent {
  title: string;
  styles: string;
  body: Markup;
  bodyClass?: string;
  /** A language tag (RFC 5646); by default English. */
  language?: string;
}

type Value = Markup | string | number | undefined | false | readonly Markup[];

/** A template tag that escapes values unless they are Markup, and omits undefined and false. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Markup {
  const texts = parts.map((part, index) => part + (index < values.length ? render(values[index]) : ''));
  return new Markup(texts.join(''));
}

export function joinMarkup(items: readonly Markup[], separator: string): Markup {
  return new Markup(items.map(({ text }) => text).join(escapeText(separator)));
}

/** Renders the text of an OpenAPI description. The only CommonMark that it supports is code between backticks. */
export function prose(text: string): Markup {
  return new Markup(
    text
      .split(/`([^`]+)`/)
      .map((part, index) => (index % 2 === 1 ? `<code>${escapeText(part)}</code>` : escapeText(part)))
      .join(''),
  );
}

function render(value: Value): string {
  if (value === undefined || value === false) return '';
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map((one: Markup) => one.text).join('');
  return escapeText(String(value));
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
