// The first part of the demo. An intake application creates, completes and submits a draft for an applicant without an
// account.

import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { businessLicenceId, exampleFormData } from '../demo-data/business-licence.ts';
import { type Conversation, check, Surprise, shorten } from './conversation.ts';

const longestWait = 30_000;

/** Runs the first part of the demo. Throws Surprise at the first unexpected response. */
export async function runDemo(talk: Conversation, print: (line: string) => void): Promise<void> {
  const headers = await signIn(talk);
  // Each run uses a different email address, because codes have a rate limit per address.
  const address = `ana.${randomInt(1_000_000)}@example.org`;
  const path = await createDraft(talk, headers, address);

  talk.say('Save the first form data');
  await talk.send({
    method: 'PUT',
    path: `${path}/data`,
    headers,
    body: { data: exampleFormData.begun, files: {} },
    expect: 200,
  });

  talk.say('The applicant returns: send a code');
  const sent = await talk.send({ method: 'POST', path, headers, body: { operation: 'send-code' }, expect: 202 });
  check(sent.body.sent === true, 'the response confirms that a code was sent');
  const code = await readCode(talk, print, address);

  talk.say('Read the draft with the code');
  const draft = await talk.send({
    method: 'GET',
    path: `${path}/data`,
    headers: { ...headers, 'X-Form-Code': code },
    expect: 200,
  });
  check(isDeepStrictEqual(draft.body.data, exampleFormData.begun), 'the form data is as it was saved');

  talk.say('Complete the form data, unless it has changed since (If-Match)');
  const etag = draft.headers.get('ETag') ?? '';
  check(etag !== '', 'the response has an ETag');
  const complete = { data: exampleFormData.complete, files: {} };
  const updated = await talk.send({
    method: 'PUT',
    path: `${path}/data`,
    headers: { ...headers, 'If-Match': etag },
    body: complete,
    expect: 200,
  });
  check(isDeepStrictEqual(updated.body.data, exampleFormData.complete), 'the new form data is saved');

  talk.say('Submit');
  const submitted = await talk.send({ method: 'POST', path, headers, body: { operation: 'submit' }, expect: 200 });
  check(submitted.body.status === 'Submitted', 'the form is submitted');

  talk.say('The applicant is notified');
  const notice = await waitForMail(talk, address, ({ subject }) => /submitted|received/i.test(subject));
  printMail(print, notice);
}

type Headers = Record<string, string>;

async function signIn(talk: Conversation): Promise<Headers> {
  talk.say('The intake application signs in with its service account');
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: 'demo-intake',
    client_secret: 'demo-intake-secret',
  });
  const path = '/auth/realms/demo/protocol/openid-connect/token';
  const { body: tokens } = await talk.send({ method: 'POST', path, body, expect: 200 });
  check(typeof tokens.access_token === 'string', 'the response has an access token');
  return { Authorization: `Bearer ${String(tokens.access_token)}` };
}

/** @returns the path of the form */
async function createDraft(talk: Conversation, headers: Headers, address: string): Promise<string> {
  talk.say('Create a draft for an applicant without an account');
  const applicant = { addressAs: 'Ana', channels: [{ channel: 'email', address }] };
  const body = { definitionId: businessLicenceId, applicant };
  const created = await talk.send({ method: 'POST', path: '/form/v1/forms', headers, body, expect: 201 });
  check(created.body.status === 'Draft', 'the form is a draft');
  check(typeof created.body.id === 'string', 'the form has an id');
  return `/form/v1/forms/${String(created.body.id)}`;
}

interface Mail {
  to: string;
  subject: string;
  text: string;
}

async function readCode(talk: Conversation, print: (line: string) => void, address: string): Promise<string> {
  talk.say('The applicant reads the code in the mailbox');
  const codeIn = ({ text }: Mail) =>
    /^\s*([A-Z0-9]{6,12})\s*$/m.exec(text)?.[1] ?? /code\W+(?:is\W+)?([A-Z0-9]{6,12})\b/i.exec(text)?.[1];
  const mail = await waitForMail(talk, address, (candidate) => codeIn(candidate) !== undefined);
  const code = codeIn(mail) ?? '';
  printMail(print, {
    ...mail,
    subject: mail.subject.replaceAll(code, shorten(code)),
    text: mail.text.replaceAll(code, shorten(code)),
  });
  return code;
}

async function waitForMail(talk: Conversation, address: string, matches: (mail: Mail) => boolean): Promise<Mail> {
  for (const deadline = Date.now() + longestWait; Date.now() < deadline; await sleep(200)) {
    const messages = await talk.peek('/mailbox/messages');
    const found =
      Array.isArray(messages) && messages.filter(isMail).find((mail) => mail.to === address && matches(mail));
    if (found) return found;
  }
  throw new Surprise(`The expected mail did not arrive within ${longestWait / 1000} s.`);
}

function isMail(value: unknown): value is Mail {
  if (!value || typeof value !== 'object') return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return ['to', 'subject', 'text'].every((name) => typeof fields.get(name) === 'string');
}

function printMail(print: (line: string) => void, { to, subject, text }: Mail): void {
  print(`  To: ${to}\n  Subject: ${subject}\n`);
  for (const line of text.split('\n').slice(0, 12)) print(`  | ${line}`);
}
