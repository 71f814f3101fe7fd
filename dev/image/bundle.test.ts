// Tests the bundle of the image: what it contains, and that its processes start. `npm run test:cluster` tests whole
// services.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SchemaJob, SchemaResult } from '../../src/forms/definitions/schema-worker.ts';
import { WorkerProcess } from '../../src/service/workers/worker-process.ts';
import { buildPages } from '../../web/build.ts';
import { bundle } from './bundle.ts';

const root = join(import.meta.dirname, '../..');
// The folder is inside the project, because the limited workers, which run tenants' code, may not read files outside
// the project.
const folder = join(root, 'node_modules/.cache', `formgate-bundle-${process.pid}`);
beforeAll(async () => {
  await buildPages();
  mkdirSync(folder, { recursive: true });
  await bundle(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (args: string[], env = {}) =>
  promisify(execFile)(process.execPath, [join(folder, 'src/image/main.js'), ...args], { env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  );

describe('the bundle', () => {
  it('contains each module that the program finds by its path', async () => {
    const modules = new Set<string>();
    for await (const path of glob('{src,reconciler}/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }))
      for (const [, found] of readFileSync(join(root, path), 'utf8').matchAll(/'((?:src|reconciler)\/[^']+\.ts)'/g))
        if (found !== undefined && !found.includes('*')) modules.add(found);
    expect([...modules]).toContain('src/forms/definitions/schema-worker.ts');
    const missing = [...modules].filter((path) => !existsSync(join(folder, path.replace(/\.ts$/, '.js'))));
    expect(missing).toEqual([]);
  });

  it('contains migrations and pages', () => {
    for (const path of ['src/forms/migrations/001.do.forms.sql', 'web/dist/apply/index.html', 'package.json'])
      expect(existsSync(join(folder, path)), path).toBe(true);
  });

  it('consists of ASCII characters, which V8 stores in one byte each', async () => {
    const others: string[] = [];
    for await (const path of glob('{src,reconciler}/**/*.js', { cwd: folder }))
      if (readFileSync(join(folder, path)).some((byte) => byte > 0x7f)) others.push(path);
    expect(others).toEqual([]);
  });

  it('contains the licences of its packages', () => {
    const text = readFileSync(join(folder, 'LICENSES-OF-PACKAGES'), 'utf8');
    expect(text).toMatch(/^express \d+\.\d+\.\d+, licence MIT$/m);
    expect(text).toContain('TJ Holowaychuk');
    expect(text).toMatch(/^@kubernetes\/client-node \S+, licence Apache-2\.0$/m);
  });
});

describe('a process of the bundle', () => {
  it.each(['forms', 'token-handler', 'platform-server', 'reconcile'])(
    '%s lists the settings that are missing',
    async (name) => {
      const { code, stdout } = await run([name]);
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({
        level: 'fatal',
        problems: expect.arrayContaining(['DATABASE_URL: is required']),
      });
    },
  );

  it.each(['config', 'quarantine', 'erasures', 'keycloak-setup'])('%s shows its help', async (name) => {
    expect(await run([name, '--help'])).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage') });
  });

  it('validates form data in a limited worker', async () => {
    const script = join(folder, 'src/forms/definitions/schema-worker.js');
    const worker = await WorkerProcess.start<SchemaJob, SchemaResult>({ script, memoryMb: 128, jobMs: 5_000 });
    const schema = JSON.stringify({ properties: { mail: { type: 'string', format: 'email', minLength: 3 } } });
    const job = { key: 'one', schema, urnPrefix: 'urn:example' };
    const reply = async (mail: string) => worker.run({ ...job, data: JSON.stringify({ mail }) });
    expect(await reply('ana@example.org')).toEqual({ done: { errors: [], truncated: false } });
    expect(await reply('ana')).toMatchObject({ done: { errors: [{ pointer: '/data/mail' }] } });
    await worker.end();
  });
});
