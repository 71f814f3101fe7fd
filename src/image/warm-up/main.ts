// Runs while the image is built. It loads the bundle (dev/image/bundle.ts), so that Node's compile cache contains the
// compiled bundle.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { programFile, programModule } from '../../service/program-files.ts';

// Imports every shared module of the bundle. A running process loads some of them only when it needs them: to migrate a
// database, to send a mail, or to send traces to a collector.
const shared = programFile('src/chunks');
for (const name of readdirSync(shared)) await import(join(shared, name));
flushCompileCache();

// Runs the worker scripts without this process's V8 flags, because worker processes run without these flags, and the
// cache keeps compiled code separately for each set of flags.
for (const path of ['src/forms/definitions/schema-worker.ts', 'src/platform-server/tenant-code-worker.ts'])
  spawnSync(process.execPath, [programModule(path)], { timeout: 30_000 });

// Runs the entry point with each of these commands. Each command exits, because it has no configuration.
const entry = programModule('src/image/main.ts');
for (const command of ['forms', 'token-handler', 'platform-server', 'reconcile', 'migrate', 'config', 'quarantine'])
  spawnSync(process.execPath, [...process.execArgv, entry, command], { timeout: 30_000 });
