// `npm run demo`: completes and submits a draft and signs a person in, against a running `npm start`. Exits with 1 at
// the first unexpected response.

import { UsageError } from '../src/service/operations/command-line.ts';
import { runConsoleDemo } from './demo/console-steps.ts';
import { createConversation, Surprise } from './demo/conversation.ts';
import { runDemo } from './demo/steps.ts';
import { parseFlags, parsePort } from './options.ts';

const help = `Creates a draft of the form business-licence for an applicant without an account, sends a code, takes it from the
mailbox, reads the draft with it, completes the form and submits it. Then registers the frontend demo-console, signs
admin@example.com in through the token handler, calls the form service with the session and signs out. Shows each
request and response. Requires a running npm start.

Usage: npm run demo [-- --help]

Environment:
  PORT   port of npm start (8080)`;

async function main(): Promise<void> {
  // If a reader such as `head` closes the pipe, the demo ends without an error.
  process.stdout.once('error', () => process.exit(0));
  if (parseFlags(process.argv.slice(2), ['help']).help) return console.log(help);
  const url = `http://localhost:${parsePort(process.env)}`;
  await checkRunning(url);
  const talk = createConversation(url, console.log);
  await runDemo(talk, console.log);
  await runConsoleDemo(talk, url);
  console.log(`\nAll steps succeeded. The mail is at ${url}/mailbox`);
}

async function checkRunning(url: string): Promise<void> {
  const response = await fetch(`${url}/health`).catch(() => undefined);
  if (!response) throw new UsageError(`No response from ${url}. Start Formgate first: npm start`);
  if (response.status === 200) return;
  const parts = await response.json().catch(() => undefined);
  if (!parts || typeof parts !== 'object')
    throw new UsageError(`The server at ${url} is not Formgate. Set PORT to the port of npm start.`);
  const waiting = Object.entries(parts).flatMap(([name, ready]) => (ready ? [] : [name]));
  throw new UsageError(`Formgate at ${url} is not ready yet: ${waiting.join(', ')}. Try again in a moment.`);
}

main().catch((error: unknown) => {
  const isExpected = error instanceof Surprise || error instanceof UsageError;
  console.error(
    isExpected ? error.message : `The demo failed: ${error instanceof Error ? error.message : String(error)}`,
  );
  process.exit(1);
});
