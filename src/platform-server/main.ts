// The platform server's process.
import { parseConfig } from '../service/config.ts';
import { createLogger } from '../service/log.ts';
import { warnOfMisspelt } from '../service/misspelt.ts';
import { runMain } from '../service/run-main.ts';
import { stopOnSignals } from '../service/serve.ts';
import { configSchema } from './config.ts';
import { startPlatformServer } from './start.ts';

const name = 'platform-server';

await runMain(name, async () => {
  const config = parseConfig(configSchema);
  const log = createLogger({ name, level: config.LOG_LEVEL });
  warnOfMisspelt(configSchema, process.env, log);
  const running = await startPlatformServer({ config, log });
  stopOnSignals(running, log);
  return running;
});
