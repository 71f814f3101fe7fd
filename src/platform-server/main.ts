// The main of the platform server's process: reads the configuration, starts, and stops on a signal.
import { parseConfig } from '../service/operations/config.ts';
import { createLogger } from '../service/operations/log.ts';
import { warnOfMisspelt } from '../service/operations/misspelt.ts';
import { runMain } from '../service/operations/run-main.ts';
import { stopOnSignals } from '../service/operations/serve.ts';
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
