// Sends HTTP requests, and prints each request and response with shortened secrets.
import { styleText } from 'node:util';
import { isObject, jsonOrUndefined } from '../../src/service/json-value.ts';

/** Thrown for an unexpected response, which the message describes. */
export class Surprise extends Error {}

export interface Reply {
  /** Members of the response body if it is a JSON object; otherwise empty. */
  body: Record<string, unknown>;
  /** The parsed response body; undefined if it is not JSON. */
  json: unknown;
  text: string;
  headers: Headers;
}

export interface Exchange {
  method: string;
  path: string;
  headers?: Record<string, string>;
  /** Request body, sent as JSON, or as a form if it is a URLSearchParams. */
  body?: object | URLSearchParams;
  /** The expected status of the response, or a list of expected statuses. */
  expect: number | number[];
}

export interface Conversation {
  /** Prints a numbered heading. */
  say(text: string): void;
  /** Sends a request and prints it. Throws Surprise for an unexpected status. */
  send(exchange: Exchange): Promise<Reply>;
  /** Sends a request without printing it, for polling. */
  peek(path: string): Promise<unknown>;
}

const secretFields = new Set([
  ...['access_token', 'refresh_token', 'client_secret', 'id_token', 'password', 'code', 'registrationToken'],
]);
const secretHeaders = new Set(['authorization', 'x-form-code', 'x-xsrf-token']);
const secretParameters = /\b(code|state|nonce|code_challenge|session_state)=([^&]*)/g;
const longestText = 72;

/** Creates a conversation with the server at `baseUrl`. The printed lines have colours only if stdout is a terminal. */
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
      print(`${style('cyan', '→')} ${style('bold', method)} ${maskParameters(path)}`);
      for (const [name, value] of Object.entries(headers))
        print(style('dim', `    ${name}: ${shortenHeader(name, value)}`));
      if (body) printFields(body instanceof URLSearchParams ? Object.fromEntries(body) : body, print);
      const isForm = body instanceof URLSearchParams;
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        redirect: 'manual',
        headers: { ...headers, ...(body && !isForm && { 'Content-Type': 'application/json' }) },
        ...(body && { body: isForm ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const json = jsonOrUndefined(text);
      const isExpected = [expect].flat().includes(response.status);
      print(
        `${style(isExpected ? 'green' : 'red', '←')} ${style('bold', String(response.status))} ${response.statusText}`,
      );
      for (const line of describeHeaders(response.headers, json !== undefined)) print(style('dim', `    ${line}`));
      if (json !== undefined) printFields(json, print);
      if (!isExpected) throw new Surprise(`${method} ${path}: expected ${expect}, got ${response.status}.`);
      return { body: membersOf(json), json, text, headers: response.headers };
    },
    peek: async (path) => JSON.parse(await (await fetch(`${baseUrl}${path}`)).text()),
  };
}

function membersOf(json: unknown): Record<string, unknown> {
  return isObject(json) ? json : {};
}

/** Returns the lines for the response headers that the demo prints. Secrets in them are shortened. */
function describeHeaders(headers: Headers, isJson: boolean): string[] {
  const shown = [...(isJson ? ['ETag'] : []), 'Location'].flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [`${name}: ${maskParameters(value)}`];
  });
  const cookies = headers.getSetCookie().filter(isOfSite);
  return [...shown, ...cookies.map((line) => `Set-Cookie: ${maskCookie(line)}`)];
}

/** False for the cookies of the identity provider, which the demo does not show. */
function isOfSite(cookie: string): boolean {
  return !cookie.startsWith('access_');
}

function maskParameters(text: string): string {
  const readable = text.replace(/%(?:3A|2F)/g, decodeURIComponent);
  return readable.replace(secretParameters, (_, name: string, value: string) => `${name}=${shorten(value)}`);
}

function maskCookie(line: string): string {
  return line.replace(/^([^=]*)=([^;]*)/, (_, name: string, value: string) =>
    value === '' ? `${name}=` : `${name}=${shorten(value)}`,
  );
}

/** Throws Surprise if the condition is false. */
export function check(holds: boolean, expectation: string): asserts holds {
  if (!holds) throw new Surprise(`Expected that ${expectation}.`);
}

function printFields(body: unknown, print: (line: string) => void): void {
  const shown = JSON.stringify(
    body,
    (name, value: unknown) => (secretFields.has(name) ? shorten(value) : cut(value)),
    2,
  );
  for (const line of shown.split('\n')) print(`    ${line}`);
}

function shortenHeader(name: string, value: string): string {
  if (name === 'Cookie') return value.split('; ').filter(isOfSite).map(maskCookie).join('; ');
  if (!secretHeaders.has(name.toLowerCase())) return value;
  const [scheme, token] = value.split(' ');
  return token === undefined ? shorten(value) : `${scheme} ${shorten(token)}`;
}

/** Shortens a secret, so that enough remains to tell two secrets apart, but too little to use one. */
export function shorten(secret: unknown): string {
  const text = String(secret);
  return `${text.slice(0, text.length > 20 ? 6 : 2)}…`;
}

function cut(value: unknown): unknown {
  return typeof value === 'string' && value.length > longestText ? `${value.slice(0, longestText)}…` : value;
}
