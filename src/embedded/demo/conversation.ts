// Speaks HTTP and shows it: each request, each answer, and nothing that could be used by whoever looks over a shoulder.
import { styleText } from 'node:util';

/** Something that the demo did not expect; the message says what. */
export class Surprise extends Error {}

export interface Reply {
  body: Record<string, unknown>;
  headers: Headers;
}

export interface Exchange {
  method: string;
  path: string;
  headers?: Record<string, string>;
  /** JSON unless it is a form. */
  body?: object | URLSearchParams;
  /** The status that is no surprise. */
  expect: number;
}

export interface Conversation {
  /** A heading above what follows. */
  say(text: string): void;
  /** Sends and shows; throws Surprise for another status than the expected one. */
  send(exchange: Exchange): Promise<Reply>;
  /** Sends without showing; for waiting. */
  peek(path: string): Promise<unknown>;
}

const secretFields = new Set(['access_token', 'refresh_token', 'client_secret', 'id_token', 'password', 'code']);
const secretHeaders = new Set(['authorization', 'x-form-code']);
const longestText = 72;

/** Colours are used on a terminal only. */
export function createConversation(baseUrl: string, print: (line: string) => void): Conversation {
  const style = (format: Parameters<typeof styleText>[0], text: string) =>
    styleText(format, text, { stream: process.stdout });
  let step = 0;
  return {
    say: (text) => {
      step += 1;
      print(`\n${style('bold', `${step}. ${text}`)}`);
    },
    send: async ({ method, path, headers = {}, body, expect }) => {
      print(`${style('cyan', '→')} ${style('bold', method)} ${path}`);
      for (const [name, value] of Object.entries(headers))
        print(style('dim', `    ${name}: ${shortenHeader(name, value)}`));
      if (body) printFields(body instanceof URLSearchParams ? Object.fromEntries(body) : body, print);
      const isForm = body instanceof URLSearchParams;
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: { ...headers, ...(body && !isForm && { 'Content-Type': 'application/json' }) },
        ...(body && { body: isForm ? body : JSON.stringify(body) }),
      });
      const reply = { body: parseObject(await response.text()), headers: response.headers };
      const isExpected = response.status === expect;
      print(
        `${style(isExpected ? 'green' : 'red', '←')} ${style('bold', String(response.status))} ${response.statusText}`,
      );
      const etag = response.headers.get('ETag');
      if (etag) print(style('dim', `    ETag: ${etag}`));
      printFields(reply.body, print);
      if (!isExpected) throw new Surprise(`${method} ${path} answered ${response.status}, not ${expect}.`);
      return reply;
    },
    peek: async (path) => JSON.parse(await (await fetch(`${baseUrl}${path}`)).text()),
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed && typeof parsed === 'object' ? { ...parsed } : {};
  } catch {
    return {};
  }
}

function printFields(body: object, print: (line: string) => void): void {
  const shown = JSON.stringify(
    body,
    (name, value: unknown) => (secretFields.has(name) ? shorten(value) : cut(value)),
    2,
  );
  for (const line of shown.split('\n')) print(`    ${line}`);
}

function shortenHeader(name: string, value: string): string {
  if (!secretHeaders.has(name.toLowerCase())) return value;
  const [scheme, token] = value.split(' ');
  return token === undefined ? shorten(value) : `${scheme} ${shorten(token)}`;
}

/** Enough to tell two apart, too little to use. */
export function shorten(secret: unknown): string {
  const text = String(secret);
  return `${text.slice(0, text.length > 20 ? 6 : 2)}…`;
}

function cut(value: unknown): unknown {
  return typeof value === 'string' && value.length > longestText ? `${value.slice(0, longestText)}…` : value;
}
