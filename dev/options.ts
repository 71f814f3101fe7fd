// Options of `npm start` and `npm run demo`, from arguments and environment. Unknown arguments are rejected.
import { join, resolve } from 'node:path';
import { parseCommandLine, UsageError } from '../src/service/operations/command-line.ts';

export interface StartOptions {
  port: number;
  /** Folder that contains all data of `npm start`. */
  directory: string;
  fresh: boolean;
  help: boolean;
  urnPrefix: string;
  /** URL of the Redis for the sessions. Without this URL, the token handler keeps the sessions in memory. */
  redisUrl?: string;
}

const project = join(import.meta.dirname, '..');
const defaultPort = '8080';

export function parseStartOptions(args: string[], env: NodeJS.ProcessEnv): StartOptions {
  const { fresh = false, help = false } = parseFlags(args, ['fresh', 'help']);
  return {
    fresh,
    help,
    port: parsePort(env),
    directory: resolve(env.FORMGATE_DATA || join(project, '.formgate')),
    urnPrefix: env.URN_PREFIX || 'urn:example',
    ...(env.REDIS_URL && { redisUrl: env.REDIS_URL }),
  };
}

export function parseFlags(args: string[], names: string[]): Record<string, boolean | undefined> {
  const options = Object.fromEntries(names.map((name) => [name, { type: 'boolean' as const }]));
  return parseCommandLine({ args, options }).values;
}

export function parsePort(env: NodeJS.ProcessEnv): number {
  const text = env.PORT || defaultPort;
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`PORT must be a number up to 65535, not ${JSON.stringify(text)}.`);
}

/** Returns the command that runs the demo against `publicUrl`. The command sets PORT if the port is not the default. */
export function demoCommand(publicUrl: string): string {
  const port = new URL(publicUrl).port || '80';
  return port === defaultPort ? 'npm run demo' : `PORT=${port} npm run demo`;
}
