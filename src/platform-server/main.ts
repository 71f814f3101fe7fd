// The entry point of the platform server.
import { runService } from '../service/operations/run-service.ts';
import { settings } from './config.ts';
import { startPlatformServer } from './start.ts';

await runService('platform-server', settings, startPlatformServer);
