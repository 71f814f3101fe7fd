// The entry point of the form service.
import { runService } from '../service/operations/run-service.ts';
import { configSchema } from './config.ts';
import { startForms } from './start.ts';

await runService('form-service', configSchema, startForms);
