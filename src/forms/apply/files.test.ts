// Tests uploads to scripted file services: one accepts the file, one fails, and one never stops sending its response.
import { createServer, type ServerResponse } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { listenOnLowPort } from '../../../dev/ports.ts';
import { createMetrics } from '../../service/operations/metrics.ts';
import { createUrns } from '../../service/urn.ts';
import { createFileUpload } from './files.ts';

const id = '3f0c8e2d-6b11-4d9a-8557-c1e7b4d9a551';
const endings: (() => unknown)[] = [];
afterEach(() => Promise.all(endings.splice(0).map((end) => end())));

async function uploadTo(respond: (response: ServerResponse) => void) {
  const server = createServer((request, response) => {
    request.resume().once('end', () => respond(response));
  });
  const port = await listenOnLowPort(server);
  endings.push(() => server.close());
  const files = createFileUpload({
    directory: { resolve: async () => `http://127.0.0.1:${port}` },
    account: { token: async () => 'a token', renew: async () => 'a token' },
    urns: createUrns('urn:example'),
    fileType: 'attachments',
    metrics: createMetrics(),
  });
  const file = { tenantId: 'urn:example:tenants/demo', formId: id, name: 'plan.pdf', content: Buffer.from('content') };
  return files.upload(file);
}

it('an uploaded file has the URN that the file service gave it', async () => {
  const file = await uploadTo((response) => response.writeHead(200).end(JSON.stringify({ id })));
  expect(file).toEqual({ urn: `urn:example:platform:file-service:v1:/files/${id}`, name: 'plan.pdf', size: 7 });
});

it.each([
  ['fails', 500, 502],
  ['refuses the file', 415, 400],
])('an upload gets a problem if the file service %s', async (_how, status, expected) => {
  await expect(uploadTo((response) => response.writeHead(status).end())).rejects.toMatchObject({ status: expected });
});

it('an upload gets 502 if the file service sends far more than the description of a file', async () => {
  let sent = 0;
  const flood = (response: ServerResponse) => {
    response.writeHead(200);
    const write = () => {
      while (!response.destroyed && sent < 200_000_000) {
        sent += 65_536;
        if (!response.write(' '.repeat(65_536))) return void response.once('drain', write);
      }
      response.end(JSON.stringify({ id }));
    };
    write();
  };
  await expect(uploadTo(flood)).rejects.toMatchObject({ status: 502 });
  expect(sent).toBeLessThan(20_000_000);
});
