// Renders notices from Handlebars templates, which tenants may write. A template can read only the data of its notice,
// and has no access to prototypes, partials or the console. This code runs only in a worker process with limits on time
// and memory.
import Handlebars from 'handlebars';
import { LRUCache } from 'lru-cache';
import { DateTime } from 'luxon';
import { htmlText } from './html-text.ts';
import type { Template } from './notification-type.ts';

export interface NoticeData {
  tenant: { id: string; name: string };
  event: Record<string, unknown>;
  subscriber: Record<string, unknown>;
  managementUrl: string;
}

/** The data of a notice, with the context and the payload of the event as JSON texts. */
export interface StoredNoticeData extends Omit<NoticeData, 'event'> {
  event: Omit<NoticeData['event'], 'context' | 'payload'> & { context: string; payload: string };
}

export interface Notice {
  subject: string;
  text: string;
  html: string;
}

export type RenderNotice = (template: Template, data: NoticeData) => Notice;

const safety = { allowProtoPropertiesByDefault: false, allowProtoMethodsByDefault: false };

export function createNoticeRenderer(): RenderNotice {
  const handlebars = Handlebars.create();
  handlebars.registerHelper('formatDate', formatDate);
  // The helper `log` writes to the console. The helper is removed, because logs must not contain addresses.
  handlebars.unregisterHelper('log');
  const compiled = new LRUCache<string, Handlebars.TemplateDelegate>({ max: 1_000, maxSize: 4_000_000 });

  function render(source: string, data: object, escaped: boolean): string {
    const key = `${escaped ? 'html' : 'text'}:${source}`;
    let template = compiled.get(key);
    if (!template) {
      template = handlebars.compile(escaped ? escapedThroughout(source) : source, { noEscape: !escaped });
      compiled.set(key, template, { size: key.length });
    }
    const rendered = template(data, safety);
    if (rendered.length > longestText) throw new TemplateFault(`renders to more than ${longestText} characters`);
    return rendered;
  }

  return ({ subject, title, subtitle, body }, data) => {
    const plain = { title: render(title ?? '', data, false), subtitle: render(subtitle ?? '', data, false) };
    const all = { ...data, ...plain };
    const heads = [plain.title, plain.subtitle].filter((line) => line !== '');
    // Values are escaped in the HTML, so a value that looks like markup stays in the text.
    const text = [...heads, tidy(htmlText(render(body, all, true)))].join('\n\n');
    const html = render(page(subject, body), all, true);
    return { subject: render(subject, all, false).replace(/\s+/g, ' ').trim(), text, html };
  };
}

/** Maximum length of a template, and of a text rendered from a template, in characters. */
const longestTemplate = 65_536;
const longestText = 524_288;
/** Maximum nesting depth of blocks that may repeat their content. Each level multiplies the rendering time. */
const deepestNesting = 4;

/** An error in a template. Its message contains no data of the notice. */
class TemplateFault extends Error {}

/** Returns the reason why a template may not be stored, or undefined if it may. */
export function templateFault(source: string): string | undefined {
  if (source.length > longestTemplate) return `is longer than ${longestTemplate} characters`;
  try {
    const depth = nestingOf(escapedThroughout(source));
    return depth > deepestNesting ? `nests more than ${deepestNesting} blocks that repeat` : undefined;
  } catch (error) {
    return faultOf(error);
  }
}

/**
 * Returns the reason why a template failed. Only messages about the template itself are quoted, because messages of
 * helpers may contain data.
 */
export function faultOf(error: unknown): string {
  if (error instanceof TemplateFault) return error.message;
  const [message = ''] = error instanceof Error ? error.message.split('\n') : [];
  const about = /^(?:Parse error on line \d+|Missing helper: .*|The partial .*|.* doesn't match .*)/.exec(message);
  if (about) return `is malformed: ${about[0].slice(0, 200)}`;
  if (message === 'Invalid string length') return `renders to more than ${longestText} characters`;
  return error instanceof RangeError
    ? 'recurses without end, or has an argument out of range'
    : 'fails when it renders';
}

/**
 * Returns the nesting depth of blocks that may repeat their content. These are all blocks except if, unless and with.
 */
function nestingOf(program: hbs.AST.Program): number {
  let depth = 0;
  let deepest = 0;
  const visitor = new Handlebars.Visitor();
  const visitBlock = visitor.BlockStatement.bind(visitor);
  visitor.BlockStatement = (block) => {
    const name = block.path.type === 'PathExpression' ? (block.path as hbs.AST.PathExpression).original : '';
    const repeats = ['if', 'unless', 'with'].includes(name) ? 0 : 1;
    depth += repeats;
    deepest = Math.max(deepest, depth);
    visitBlock(block);
    depth -= repeats;
  };
  visitor.accept(program);
  return deepest;
}

/** Helpers that return a value. Handlebars does not escape the result of a helper that is called as a block. */
const valueHelpers = new Set(['lookup', 'formatDate']);

function refuseValueBlock({ path }: hbs.AST.BlockStatement): void {
  // Handlebars finds some helpers by the first part of a path alone: `{{#lookup.x}}` calls `lookup` too.
  const { parts, original }: { parts?: string[]; original?: unknown } = path;
  const name = String(parts ? parts[0] : original);
  if (valueHelpers.has(name)) throw new TemplateFault(`calls ${name} as a block, so that its result is not escaped`);
}

/**
 * Returns a template in which `{{{x}}}` and `{{&x}}` escape their value too, so that form data can never become markup.
 * Throws TemplateFault for a block that would insert a value without escaping it.
 */
function escapedThroughout(source: string): hbs.AST.Program {
  const program = Handlebars.parse(source);
  const visitor = new Handlebars.Visitor();
  visitor.MustacheStatement = (mustache) => {
    mustache.escaped = true;
  };
  const visitBlock = visitor.BlockStatement.bind(visitor);
  visitor.BlockStatement = (block) => {
    refuseValueBlock(block);
    visitBlock(block);
  };
  visitor.accept(program);
  return program;
}

/** The colours have a contrast of at least 7:1. The styles are inline, because mail programs drop stylesheets. */
const styles = {
  body: 'margin: 0; padding: 24px; background: #ffffff; color: #1a1f27; font: 16px/1.5 system-ui, sans-serif',
  main: 'max-width: 600px; margin: 0 auto',
};

/** Returns the HTML page of a mail. Its `lang` is the `language` in the event's payload; the default is `en`. */
function page(subject: string, body: string): string {
  const language = '{{#if event.payload.language}}{{event.payload.language}}{{else}}en{{/if}}';
  const heads = '{{#if title}}<h1>{{title}}</h1>{{/if}}{{#if subtitle}}<p>{{subtitle}}</p>{{/if}}';
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${subject}</title>
</head>
<body style="${styles.body}">
<main style="${styles.main}">
${heads}<div>${body}</div>
</main>
</body>
</html>
`;
}

function tidy(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/**
 * Formats a date, as in `{{formatDate event.payload.deleteOn}}`. The options and their defaults are `locale` (en-CA),
 * `timeZone` (UTC), `dateStyle` (long) and `timeStyle` (short; "none" omits the time). Instead of the two styles,
 * `format` may contain Luxon tokens, such as "DDD". The public platform supports only `format`. An invalid date renders
 * as an empty text.
 */
function formatDate(value: unknown, options: Handlebars.HelperOptions): string {
  const date = typeof value === 'string' || typeof value === 'number' ? new Date(value) : value;
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) return '';
  const { locale = 'en-CA', timeZone = 'UTC', dateStyle, timeStyle, format } = options.hash;
  if (format !== undefined && dateStyle === undefined && timeStyle === undefined)
    return DateTime.fromJSDate(date, { zone: String(timeZone) })
      .setLocale(locale)
      .toFormat(String(format));
  const time = timeStyle === 'none' ? {} : { timeStyle: timeStyle ?? 'short' };
  const text = formatOf(locale, { dateStyle: dateStyle ?? 'long', timeZone, ...time }).format(date);
  return timeStyle === 'none' ? text : `${text} ${timeZone}`;
}

/**
 * Each format holds about 50 KB outside the heap, where it does not hasten the garbage collection. Without this cache,
 * a template with a loop could use any amount of memory.
 */
const formats = new LRUCache<string, Intl.DateTimeFormat>({ max: 50 });

function formatOf(locale: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options]);
  const format = formats.get(key) ?? new Intl.DateTimeFormat(locale, options);
  formats.set(key, format);
  return format;
}
