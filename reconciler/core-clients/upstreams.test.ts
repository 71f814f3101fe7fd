// Checks upstreams against a directory service that has their entries, lacks them, or fails.
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createDirectory } from '../../src/platform/directory.ts';
import { createUrns } from '../../src/service/urn.ts';
import { answerJson, type FaultServer, startFaultServer } from '../../test/support/fault-server.ts';
import { createPlatformCalls, type PlatformCalls } from '../../test/support/platform-calls.ts';
import { checkUpstreams } from './upstreams.ts';

let server: FaultServer;
let calls: PlatformCalls;

const entry = (name: string, url: string) => ({ urn: `urn:example:platform:${name}`, url });

beforeEach(async () => {
  calls = createPlatformCalls();
  const entries = [entry('form-service', 'http://forms.example.org'), entry('broken', 'ftp://broken.example.org')];
  server = await startFaultServer(answerJson(entries));
});
afterEach(async () => {
  await calls.close();
  await server.close();
});

const check = async (...names: string[]) => {
  const urns = createUrns('urn:example');
  const directory = createDirectory({ ...calls.options, url: server.url, urns });
  return Object.fromEntries(
    await checkUpstreams(
      names.map((name) => `urn:example:platform:${name}`),
      directory,
    ),
  );
};

it('an upstream is resolved if the directory has a usable entry, or one of its service', async () => {
  expect(await check('form-service', 'form-service:v1')).toEqual({
    'urn:example:platform:form-service': 'resolved',
    'urn:example:platform:form-service:v1': 'resolved',
  });
});

it('an upstream is absent if the directory has no entry, or one that cannot be called', async () => {
  expect(await check('missing', 'broken')).toEqual({
    'urn:example:platform:missing': 'absent',
    'urn:example:platform:broken': 'absent',
  });
});

it('a thousand upstreams that the directory does not know cause few requests', async () => {
  const states = await check(...Array.from({ length: 1_000 }, (_, n) => `missing-${n}`));
  expect(new Set(Object.values(states))).toEqual(new Set(['absent']));
  expect(server.requests.length).toBeLessThan(10);
});

it('an upstream is unknown while the directory fails', async () => {
  server.behave(answerJson({ errorMessage: 'broken' }, 500));
  expect(await check('form-service')).toEqual({ 'urn:example:platform:form-service': 'unknown' });
});
