// Runs the commands of README's tour as they are written there, against a Formgate that this test starts.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommands } from '../test/support/curl-shell.ts';
import { until } from '../test/support/until.ts';
import { findFreePort } from './ports.ts';

const root = join(import.meta.dirname, '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
let folder: string;
let port: number;
let product: ChildProcess;
let output = '';
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formgate-tour-'));
  // If root runs the test, Postgres runs as another account, which must be able to enter the folder.
  chmodSync(folder, 0o755);
  port = await findFreePort();
  env = { ...process.env, PORT: String(port), FORMGATE_DATA: join(folder, 'data') };
  product = spawn(process.execPath, [join(root, 'dev/main.ts')], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [product.stdout, product.stderr])
    stream?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('npm start', () => output.includes('Formgate is ready'), { patience: 180_000 });
}, 240_000);
afterAll(async () => {
  product.kill('SIGTERM');
  if (product.exitCode === null && product.signalCode === null) await once(product, 'close');
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the commands below a heading of README, with the address of the Formgate that this test started. */
function commandsBelow(heading: string): string {
  const [, section = ''] = readme.split(`\n### ${heading}\n`);
  const [, block] = /```sh\n([\s\S]*?)```/.exec(section.split('\n### ')[0] ?? '') ?? [];
  if (block === undefined) throw new Error(`README has no commands below “${heading}”.`);
  return block.replaceAll('localhost:8080', `localhost:${port}`);
}

const inShell = (commands: string) => runCommands(commands, { cwd: root, env });

const mails = async () => {
  const response = await fetch(`http://localhost:${port}/mailbox/messages`);
  return ((await response.json()) as { subject: string }[]).map(({ subject }) => subject);
};

describe('the tour', () => {
  it('creates a draft, reads it with the code, saves it, and shows what its submission lacks', async () => {
    const { code, text } = await inShell(commandsBelow('A draft'));
    expect(text.match(/^HTTP\/1\.1 \d+/gm)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
    expect(text).toContain('"pointer":"/data/');
    expect(code).toBe(0);
  });

  it('creates a register that anyone can read, and offers its entries in the form', async () => {
    const { code, text } = await inShell(`BASE=http://localhost:${port}\n${commandsBelow('A register')}`);
    expect(text).toMatch(/^HTTP\/1\.1 200[\s\S]*Repairs/m);
    expect(text.trimEnd()).toMatch(/^200$/m);
    expect(code).toBe(0);
  });

  it('warns the applicant of the draft’s lock, locks the draft and deletes it, with a mail about each step', async () => {
    const commands = commandsBelow('The end of a draft').trimEnd().split('\n');
    const subjects = [undefined, 'will soon be locked', 'is locked', 'is deleted'];
    expect(commands).toHaveLength(subjects.length);
    for (const [nth, command] of commands.entries()) {
      // The expiry deletes a form at the earliest one second after locking it. A person who reads the mail before
      // running the next command waits longer than that.
      await delay(1_000);
      expect(await inShell(command)).toMatchObject({ code: 0 });
      const subject = subjects[nth];
      if (subject) await expect.poll(mails).toContainEqual(expect.stringContaining(subject));
    }
  });
});
