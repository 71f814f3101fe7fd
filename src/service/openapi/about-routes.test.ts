// Tests the routes that describe a service.
import { afterEach, describe, expect, it } from 'vitest';
import { type ListeningApp, startApp } from '../../../test/support/listening-app.ts';
import { type AboutOptions, aboutRoutes } from './about-routes.ts';

let app: ListeningApp | undefined;
afterEach(() => app?.close());

async function start(options: Partial<AboutOptions> = {}): Promise<string> {
  const about = { name: 'Form service', description: 'Drafts of forms', api: '/form/v1', checks: {} };
  app = await startApp(aboutRoutes({ ...about, ...options }));
  return app.url;
}

describe('GET /', () => {
  it('returns name, description and links in the format of the older platform', async () => {
    const url = await start();
    expect(await (await fetch(url)).json()).toEqual({
      name: 'Form service',
      description: 'Drafts of forms',
      _links: {
        self: { href: `${url}/` },
        health: { href: `${url}/health` },
        api: { href: `${url}/form/v1` },
        docs: { href: `${url}/swagger/docs/v1` },
      },
    });
  });
});

describe('GET /health', () => {
  it('returns 200 with one boolean for each dependency, even if some fail', async () => {
    const checks = {
      access: async () => true,
      directory: async () => false,
      tenant: () => Promise.reject(new Error('down')),
      db: () => {
        throw new Error('down');
      },
    };
    const response = await fetch(`${await start({ checks })}/health`);
    expect([response.status, await response.json()]).toEqual([
      200,
      { access: true, directory: false, tenant: false, db: false },
    ]);
  });

  it('checks each dependency at most once in ten seconds, even for concurrent requests', async () => {
    let asked = 0;
    let now = new Date('2026-09-01T12:00:00Z');
    const checks = {
      access: async () => {
        asked += 1;
        return asked > 1;
      },
    };
    const url = await start({ checks, clock: () => now });
    const ask = async () => (await (await fetch(`${url}/health`)).json()) as unknown;
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(Array(3).fill({ access: false }));
    now = new Date('2026-09-01T12:00:09Z');
    expect([await ask(), asked]).toEqual([{ access: false }, 1]);
    now = new Date('2026-09-01T12:00:10Z');
    expect([await ask(), asked]).toEqual([{ access: true }, 2]);
  });

  it('shows an outage also after the clock was set back', async () => {
    let now = new Date('2026-09-01T12:00:00Z');
    let isUp = true;
    const url = await start({ checks: { access: async () => isUp }, clock: () => now });
    const ask = async () => (await (await fetch(`${url}/health`)).json()) as unknown;
    expect(await ask()).toEqual({ access: true });
    isUp = false;
    now = new Date('2026-09-01T11:00:00Z');
    expect(await ask()).toEqual({ access: false });
  });
});
