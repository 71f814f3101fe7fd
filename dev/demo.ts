// `npm run demo`: leads a draft through its whole life and a person through a sign-in, against a running `npm start`.
// Exit 1 at the first surprise.
import { runConsoleDemo } from './demo/console-steps.ts';
import { createConversation, Surprise } from './demo/conversation.ts';
import { runDemo } from './demo/steps.ts';
import { parseFlags, parsePort, UsageError } from './options.ts';

const help = `Creates a draft of the form business-licence for an applicant without an account, has a code sent, reads it in the
mailbox, reads the draft with it, completes and submits it. Then registers the frontend demo-console, signs admin@example.com in through the token handler,
calls the form service with the session and signs out. Shows each request and answer. Needs a running npm start.

Usage: npm run demo [-- --help]

Environment:
  PORT   port of npm start (8080)`;

async function main(): Promise<void> {
  // Who stops reading, as `head` does, has seen enough.
  process.stdout.once('error', () => process.exit(0));
  if (parseFlags(process.argv.slice(2), ['help']).help) return console.log(help);
  const url = `http://localhost:${parsePort(process.env)}`;
  await checkRunning(url);
  const talk = createConversation(url, console.log);
  await runDemo(talk, console.log);
  await runConsoleDemo(talk, url);
  console.log(`\nEverything went as it should. The mail is at ${url}/mailbox`);
}

async function checkRunning(url: string): Promise<void> {
  const response = await fetch(`${url}/health`).catch(() => undefined);
  if (!response) throw new UsageError(`Nothing answers at ${url}. Start Formgate first: npm start`);
  if (response.status === 200) return;
  const parts = await response.json().catch(() => undefined);
  if (!parts || typeof parts !== 'object') throw new UsageError(`What answers at ${url} is not Formgate.`);
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
