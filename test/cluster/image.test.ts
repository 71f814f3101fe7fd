// Tests the content of the image. Each command of the image runs without a shell, as an unprivileged user, and writes
// no file.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestAccess, type TestAccess, testServiceSecret } from '../support/access.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { run } from './commands.ts';
import { type ImageFolder, openImage } from './image-folder.ts';
import { imageOf } from './world.ts';

let image: ImageFolder;
let access: TestAccess;
let redis: TestRedis;
let databases: Record<'forms' | 'token-handler' | 'platform-server', TestDatabase>;
beforeAll(async () => {
  image = await openImage(imageOf('IMAGE'));
  access = await startTestAccess();
  redis = await startTestRedis();
  databases = {
    forms: await createTestDatabase(),
    'token-handler': await createTestDatabase(),
    'platform-server': await createTestDatabase(),
  };
});
afterAll(async () => {
  await image?.close();
  await redis?.close();
  await access?.close();
  for (const database of Object.values(databases ?? {})) await database.drop();
});

const files = () => readdirSync(image.path, { recursive: true, encoding: 'utf8' });
const surroundings = (command: keyof typeof databases) => ({
  ACCESS_SERVICE_URL: access.url,
  DIRECTORY_URL: 'http://127.0.0.1:9/directory/v2',
  CLIENT_SECRET: testServiceSecret(access.urns.service(command === 'forms' ? 'form-service' : command)),
  CODE_KEY: 'a key of codes that is long enough',
  KEY_RING: `one:${Buffer.alloc(32, 1).toString('base64')}`,
  REDIS_URL: redis.url,
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'no-reply@example.com',
  DATABASE_URL: databases[command].url,
});

describe('the image', () => {
  it('is smaller than 200 MB', async () => {
    const [bytes] = (await run('du', ['-s', '--apparent-size', '--block-size=1', image.path])).split(/\s/);
    expect(Number(bytes)).toBeLessThan(200_000_000);
  });

  it('contains the bundled program and the licences of its packages, and no sources, packages, tests or npm cache', () => {
    const inside = files();
    for (const path of ['src/forms/main.js', 'reconciler/main.js', 'LICENSE', 'LICENSES-OF-PACKAGES'])
      expect(inside).toContain(`app/${path}`);
    const unwanted = /^app\/(?:.*\.ts$|.*\.map$|(?:dev|test|docs)\b|.*node_modules\b)|_cacache/;
    expect(inside.filter((path) => unwanted.test(path))).toEqual([]);
  });

  it('contains the pages, and the user of the image can read all of /app', () => {
    const inside = files().filter((path) => path.startsWith('app/'));
    for (const name of ['apply', 'console']) expect(inside).toContain(`app/web/dist/${name}/index.html`);
    // A folder must also be searchable.
    const isReadable = (path: string) => {
      const entry = statSync(join(image.path, path));
      const needed = entry.isDirectory() ? 0o5 : 0o4;
      return entry.uid === 65532 || (entry.mode & needed) === needed;
    };
    expect(inside.filter((path) => !isReadable(path))).toEqual([]);
  });

  it('runs as an unprivileged user in /app, and has descriptive labels', () => {
    const { User, WorkingDir, ExposedPorts, Labels } = image.config;
    expect({ User, WorkingDir, ports: Object.keys(ExposedPorts).sort() }).toEqual({
      User: '65532:65532',
      WorkingDir: '/app',
      ports: ['8080/tcp', '9090/tcp'],
    });
    for (const name of ['title', 'description', 'licenses', 'source', 'version', 'revision'])
      expect(Labels[`org.opencontainers.image.${name}`]).toMatch(/./);
  });

  it('starts Node with the flags that limit its memory', () => {
    expect(image.config.Entrypoint).toEqual([
      '/nodejs/bin/node',
      '--max-semi-space-size=8',
      '--heap-growing-percent=30',
      '/app/src/image/main.js',
    ]);
  });

  it('lists its commands if it gets no command or an unknown one', async () => {
    const outcome = await image.command(['form']);
    expect(outcome.code).toBe(2);
    expect(outcome.stderr).toMatch(
      /Unknown command "form"[\s\S]*forms[\s\S]*token-handler[\s\S]*platform-server[\s\S]*reconcile[\s\S]*migrate/,
    );
  });
});

describe('a command of the image', () => {
  it.each(['forms', 'token-handler', 'platform-server'] as const)(
    'migrate %s migrates the database, and changes nothing the second time',
    async (name) => {
      const env = { DATABASE_URL: databases[name].url };
      const first = await image.command(['migrate', name], env);
      expect(first).toMatchObject({ code: 0 });
      expect(first.stdout).toContain('migration applied');
      const second = await image.command(['migrate', name], env);
      expect(second).toMatchObject({ code: 0 });
      expect(second.stdout).not.toContain('migration applied');
    },
  );

  it('reconcile --help shows its arguments', async () => {
    const outcome = await image.command(['reconcile', '--help']);
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
  });

  it.each(['forms', 'token-handler', 'platform-server'] as const)(
    '%s is ready within 0.7 s, and writes nothing into the image',
    async (name) => {
      const before = files().length;
      // The limit of 700 ms is for a machine on which `timeOfWork` takes 90 ms. On a slower machine, the limit grows in
      // proportion.
      const shares: number[] = [];
      do {
        const milliseconds = await image.timeOfWork();
        shares.push((await image.timeToReady(name, surroundings(name))) / Math.max(1, milliseconds / 90));
      } while (Math.min(...shares) > 700 && shares.length < 12);
      expect(Math.min(...shares)).toBeLessThan(700);
      expect(files().length).toBe(before);
    },
  );

  it('uses the compile cache', () => {
    // The services share one folder. Their worker processes use another folder, because a worker runs with V8 flags
    // that differ from those of the services.
    const folders = readdirSync(join(image.path, 'app/compile-cache'));
    expect(folders.filter((name) => !name.endsWith('-65532'))).toEqual([]);
    const sizes = folders.map((name) => readdirSync(join(image.path, 'app/compile-cache', name)).length);
    expect(sizes).toHaveLength(2);
    expect(Math.max(...sizes)).toBeGreaterThan(40);
  });
});
