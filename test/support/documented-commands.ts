// The curl commands of the page /docs, copied from the page and run in a shell.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommands } from './curl-shell.ts';

export interface CommandResult {
  status: number;
  /** The body of the response if it is JSON, otherwise an empty object. */
  body: Record<string, unknown>;
}

export interface DocumentedCommands {
  /** The calls of the page, as method and path: `PUT /form/v1/forms/{formId}`. */
  calls: string[];
  /** Writes a file into the folder in which the commands run. */
  write(name: string, content: string): void;
  /** Runs the command of a call. `edit` changes the command as a person would do it before pasting. */
  run(call: string, variables?: Record<string, string>, edit?: (command: string) => string): Promise<CommandResult>;
  close(): void;
}

/** Reads the commands of the service at `url`, which is also their `$BASE`. */
export async function documentedCommands(url: string): Promise<DocumentedCommands> {
  const commands = commandsOf(await (await fetch(`${url}/docs`)).text());
  const folder = mkdtempSync(join(tmpdir(), 'formgate-commands-'));
  return {
    calls: [...commands.keys()],
    write: (name, content) => writeFileSync(join(folder, name), content),
    async run(call, variables = {}, edit = (command) => command) {
      const command = commands.get(call);
      if (command === undefined) throw new Error(`the page has no command for ${call}`);
      const env = { PATH: process.env.PATH, BASE: url, ...variables };
      const options = `-sS --max-time 300 -w '\\n%{http_code}'`;
      const { code, text } = await runCommands(`${edit(command)} ${options}`, { cwd: folder, env });
      if (code !== 0) throw new Error(`the command of ${call} ended with ${code}:\n${text}`);
      const end = text.lastIndexOf('\n');
      return { status: Number(text.slice(end + 1)), body: objectOf(text.slice(0, end)) };
    },
    close: () => rmSync(folder, { recursive: true }),
  };
}

const article =
  /<span class="method">(\w+)<\/span> <code>([^<]+)<\/code><\/h3>[\s\S]*?-example">Example<\/h4>\s*<pre[^>]*><code>([^<]*)</g;

function commandsOf(page: string): Map<string, string> {
  return new Map(
    [...page.matchAll(article)].map(([, method, path, command = '']) => [`${method} ${path}`, textOf(command)]),
  );
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const textOf = (markup: string) => markup.replace(/&(#?\w+);/g, (all, name: string) => entities[name] ?? all);

function objectOf(text: string): Record<string, unknown> {
  return text.startsWith('{') ? JSON.parse(text) : {};
}
