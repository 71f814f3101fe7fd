// Stores each message in a file, so that a restart loses no messages. Deletes the oldest messages above a limit.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jsonOrUndefined } from '../../src/service/json-value.ts';
import { isMessage, type Message } from './message.ts';

export interface MessageStore {
  /** Returns all messages, the newest first. */
  all(): readonly Message[];
  find(id: string): Message | undefined;
  /** Resolves when the message is flushed to disk. */
  add(message: Message): Promise<void>;
  clear(): Promise<void>;
}

/** Without `directory`, messages are kept in memory only. Above `limit`, the oldest messages are deleted. */
export async function openMessageStore(directory: string | undefined, limit = 1000): Promise<MessageStore> {
  let messages = directory === undefined ? [] : await readMessages(directory);
  const fileOf = (message: Message) => join(directory ?? '', `${message.id}.json`);
  const remove = async (gone: Message[]) => {
    if (directory !== undefined) await Promise.all(gone.map((message) => rm(fileOf(message), { force: true })));
  };
  return {
    all: () => messages,
    find: (id) => messages.find((message) => message.id === id),
    add: async (message) => {
      if (directory !== undefined) {
        const unfinished = `${fileOf(message)}.unfinished`;
        await writeFile(unfinished, JSON.stringify(message), { mode: 0o600, flush: true });
        await rename(unfinished, fileOf(message));
      }
      const kept = [message, ...messages];
      messages = kept.slice(0, limit);
      await remove(kept.slice(limit));
    },
    clear: async () => {
      const gone = messages;
      messages = [];
      await remove(gone);
    },
  };
}

async function readMessages(directory: string): Promise<Message[]> {
  await mkdir(directory, { recursive: true });
  const files = (await readdir(directory)).filter((name) => name.endsWith('.json'));
  const found: unknown[] = await Promise.all(
    files.map(async (name) => jsonOrUndefined(await readFile(join(directory, name), 'utf8'))),
  );
  return found.filter(isMessage).sort((a, b) => b.received.localeCompare(a.received));
}
