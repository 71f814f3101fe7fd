// Entry point of the token handler's process.
import { runService } from '../service/operations/run-service.ts';
import { configSchema } from './config.ts';
import { startTokenHandler } from './start.ts';

await runService('token-handler', configSchema, startTokenHandler);
