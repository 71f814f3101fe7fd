// Tests that a token handler stops in time although another service does not respond.
import { expect, it, onTestFinished } from 'vitest';
import { startFaultProxy } from '../../test/support/fault-proxy.ts';
import { startTestPlatform } from '../../test/support/platform.ts';
import { startTestTokenHandler } from '../../test/support/token-handler.ts';

it('a call of the background work that gets no response does not make the stop fail', async () => {
  const platform = await startTestPlatform();
  onTestFinished(() => platform.close());
  const proxy = await startFaultProxy(platform.url);
  onTestFinished(() => proxy.close());
  // Only calls to the event service go through the proxy.
  const directory = { DIR_PLATFORM_EVENT_SERVICE_V1: `${proxy.url}/event/v1` };
  const handler = await startTestTokenHandler({ platform, directory });
  await handler.configure({ 'permits-web': {} });
  await proxy.break('hang', { at: 1 });
  await handler.register('permits-web');
  await expect.poll(() => proxy.calls.filter((line) => line.startsWith('POST /event/v1/events'))).toHaveLength(1);
  await handler.close();
});
