// The token handler's process.
import { parseConfig } from '../service/operations/config.ts';
import { createLogger } from '../service/operations/log.ts';
import { warnOfMisspelt } from '../service/operations/misspelt.ts';
import { runMain } from '../service/operations/run-main.ts';
import { stopOnSignals } from '../service/operations/serve.ts';
import { configSchema } from './config.ts';
import { startTokenHandler } from './start.ts';

const name = 'token-handler';

await runMain(name, async () => {
  const config = parseConfig(configSchema);
  const log = createLogger({ name, level: config.LOG_LEVEL });
  warnOfMisspelt(configSchema, process.env, log);
  const running = await startTokenHandler({ config, log, env: process.env });
  stopOnSignals(running, log);
  return running;
});
