// Tests how often the record of a session is written, and for how long.
import { MemoryStore, type SessionData } from 'express-session';
import { expect, it, onTestFinished } from 'vitest';
import { startApp } from '../../../test/support/listening-app.ts';
import { createMemorySessions } from '../../../test/support/memory-sessions.ts';
import { anonymous, route } from '../../service/http/http-app.ts';
import { browserSession, renewSession, saveSession } from './browser-session.ts';

class CountingStore extends MemoryStore {
  readonly saved: string[] = [];
  override set(id: string, data: SessionData, done?: (error?: unknown) => void): void {
    this.saved.push(id);
    super.set(id, data, done);
  }
}

it('a sign-in writes the record of its session once, and sets the cookie', async () => {
  const world = createMemorySessions();
  const records = new CountingStore();
  const app = await startApp([
    route({
      method: 'get',
      path: '/sign-in',
      summary: 'Sign in',
      guards: [anonymous, browserSession(world.sessions.cookie, records)],
      responses: { 204: { description: 'Done' } },
      async handle(_input, request, response) {
        await renewSession(request);
        Object.assign(request.session, { landings: [] });
        await saveSession(request);
        response.status(204).end();
      },
    }),
  ]);
  onTestFinished(() => app.close());
  const response = await fetch(`${app.url}/sign-in`);
  expect(response.status).toBe(204);
  expect(response.headers.getSetCookie().join()).toContain(records.saved[0]);
  expect(records.saved).toHaveLength(1);
});
