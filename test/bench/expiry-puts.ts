// Applicants who save form data at a steady rate.
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { permit } from '../support/forms.ts';

export interface Applicants {
  /** Saves form data for `milliseconds`. Returns the duration of each save in milliseconds. */
  save(milliseconds: number): Promise<number[]>;
  close(): Promise<void>;
}

/** Saves per second, of all applicants together. */
const rate = 100;

export async function createApplicants(url: string, token: string, count: number): Promise<Applicants> {
  const pool = new Pool(url, { connections: 32, pipelining: 1 });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const applicant = { addressAs: 'Bench', channels: [{ channel: 'email', address: `bench-${index}@example.com` }] };
    const body = JSON.stringify({ definitionId: permit.id, applicant });
    const response = await pool.request({ method: 'POST', path: '/form/v1/forms', headers, body });
    if (response.statusCode !== 201) throw new Error(`${response.statusCode}: ${await response.body.text()}`);
    ids.push(((await response.body.json()) as { id: string }).id);
  }
  const body = JSON.stringify({ data: { name: 'x'.repeat(4_000) }, files: {} });
  async function put(index: number): Promise<number> {
    const started = performance.now();
    const path = `/form/v1/forms/${ids[index % ids.length]}/data`;
    const response = await pool.request({ method: 'PUT', path, headers, body });
    await response.body.dump();
    if (response.statusCode !== 200) throw new Error(`a save got ${response.statusCode}`);
    return performance.now() - started;
  }
  return {
    async save(milliseconds) {
      const saves: Promise<number>[] = [];
      const started = performance.now();
      for (let passed = 0; passed < milliseconds; passed = performance.now() - started) {
        while (saves.length < (passed * rate) / 1_000) saves.push(put(saves.length));
        await delay(1);
      }
      return Promise.all(saves);
    },
    close: () => pool.close(),
  };
}
