// A template tag that escapes. Every value that is not markup of ours goes through it.

/** Markup that is safe to put in a page as it is. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Value = Markup | string | number | undefined | false | readonly Markup[];

/** Literal parts stay, values are escaped unless they are Markup; undefined and false leave nothing. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Markup {
  const texts = parts.map((part, index) => part + (index < values.length ? render(values[index]) : ''));
  return new Markup(texts.join(''));
}

/** The same markup between items, as `join` does with texts. */
export function joinMarkup(items: readonly Markup[], separator: string): Markup {
  return new Markup(items.map(({ text }) => text).join(escapeText(separator)));
}

/** A description as it is written for OpenAPI: of CommonMark, code between backticks is shown, all else is text. */
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
