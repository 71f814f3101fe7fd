// Runs while the image is built. It loads the modules of each process, so that Node's compile cache contains them.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';

const project = join(import.meta.dirname, '../../..');
const loaded = [
  'src/forms/start.ts',
  'src/token-handler/start.ts',
  'src/platform-server/start.ts',
  'reconciler/start.ts',
  // The processes load this module only if a collector is configured.
  'src/service/tracing/opentelemetry.ts',
];

const workers = ['src/forms/definitions/schema-worker.ts', 'src/platform-server/tenant-code-worker.ts'];

for (const path of loaded.map((file) => join(project, file))) if (existsSync(path)) await import(path);
// The processes load Postgrator only to migrate a database, and nodemailer only for the first mail.
for (const name of ['postgrator', 'nodemailer']) await import(name);
flushCompileCache();

// Limited workers run with different V8 flags, and the cache keeps compiled code separately for each set of flags.
for (const path of workers.map((file) => join(project, file)))
  if (existsSync(path)) spawnSync(process.execPath, [path], { timeout: 30_000 });

// Runs the entry point with these commands. Without a configuration, each of them exits.
const entry = join(project, 'src/image/main.ts');
for (const command of ['forms', 'token-handler', 'platform-server', 'reconcile', 'migrate', 'quarantine'])
  spawnSync(process.execPath, [...process.execArgv, entry, command], { timeout: 30_000 });
