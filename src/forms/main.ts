// The entry point of the form service.
import { runService } from '../service/operations/run-service.ts';
import { settings } from './config.ts';
import { startForms } from './start.ts';

await runService('form-service', settings, startForms);
