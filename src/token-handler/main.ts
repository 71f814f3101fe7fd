// Entry point of the token handler's process.
import { runService } from '../service/operations/run-service.ts';
import { settings } from './config.ts';
import { startTokenHandler } from './start.ts';

await runService('token-handler', settings, startTokenHandler);
