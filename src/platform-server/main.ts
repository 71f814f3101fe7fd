// The platform server's process.
import { runService } from '../service/operations/run-service.ts';
import { configSchema } from './config.ts';
import { startPlatformServer } from './start.ts';

await runService('platform-server', configSchema, startPlatformServer);
