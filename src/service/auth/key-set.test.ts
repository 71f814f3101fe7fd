// Tests which responses of an identity provider are usable key sets, and which of their keys verify signatures.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair, type JWK, errors as jose } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { closeServer, listenOnLoopback } from '../../../test/support/loopback-server.ts';
import { downloadKeySet } from './key-set.ts';

const algorithms = ['RS256', 'ES256', 'ES384', 'ES512', 'EdDSA'];
let server: Server;
let url: string;
let asked: IncomingMessage[];
let respond: (response: ServerResponse) => void;
let ec: JWK;

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request);
    respond(response);
  });
  url = `http://127.0.0.1:${await listenOnLoopback(server)}/keys`;
  ec = await publicKey('ES256');
});
afterAll(() => closeServer(server));
beforeEach(() => {
  asked = [];
});

async function publicKey(alg: string): Promise<JWK> {
  return exportJWK((await generateKeyPair(alg, { extractable: true })).publicKey);
}
function publish(...keys: unknown[]): void {
  respond = (response) => void response.end(JSON.stringify({ keys }));
}
const download = (timeout = 5_000) => downloadKeySet(url, { timeout, algorithms });
async function finds(alg: string, kid?: string): Promise<boolean> {
  const { find } = await download();
  try {
    return (await find({ alg, ...(kid !== undefined && { kid }) })).type === 'public';
  } catch (error) {
    if (error instanceof jose.JWKSNoMatchingKey) return false;
    throw error;
  }
}
const usable = () => download().then(() => true, unusable);
function unusable(error: Error): false {
  expect([error.name, error.message]).toEqual(['UnusableKeys', 'the key set has no key that verifies signatures']);
  return false;
}

describe('a key set', () => {
  it('is asked for as JSON, and contains the keys that a token may name', async () => {
    publish({ ...ec, kid: 'a', alg: 'ES256', use: 'sig' });
    expect([await finds('ES256', 'a'), await finds('ES256', 'b'), await finds('RS256', 'a')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(asked[0]?.headers.accept).toBe('application/jwk-set+json, application/json');
  });

  it('has the same fingerprint in any order of its keys, and another with other keys', async () => {
    const [one, two] = ['a', 'b'].map((kid) => ({ ...ec, kid }));
    publish(one, two);
    const { fingerprint } = await download();
    publish(two, one, { ...ec, kid: 'c', use: 'enc' });
    expect((await download()).fingerprint).toBe(fingerprint);
    publish(one, { ...ec, kid: 'c' });
    expect((await download()).fingerprint).not.toBe(fingerprint);
    publish(one);
    expect((await download()).fingerprint).not.toBe(fingerprint);
  });

  it('may have 256 KiB, and no more', async () => {
    const sized = (size: number) => {
      const document = JSON.stringify({ keys: [ec], padding: '' });
      const text = document.replace('""', `"${'x'.repeat(size - document.length)}"`);
      expect(Buffer.byteLength(text)).toBe(size);
      respond = (response) => void response.end(text);
    };
    sized(262_144);
    expect(await usable()).toBe(true);
    sized(262_145);
    await expect(download()).rejects.toThrow('the key set is larger than 262144 bytes');
  });

  it('may come in many parts', async () => {
    const text = Buffer.from(JSON.stringify({ keys: [{ ...ec, kid: 'ключ' }] }));
    respond = (response) => {
      response.write(text.subarray(0, text.indexOf('к') + 1));
      setImmediate(() => response.end(text.subarray(text.indexOf('к') + 1)));
    };
    expect(await finds('ES256', 'ключ')).toBe(true);
  });
});

describe('a response that is no key set', () => {
  it.each([
    ['an error', 500, 'the identity provider responded with 500'],
    ['another success', 203, 'the identity provider responded with 203'],
    ['no content', 204, 'the identity provider responded with 204'],
    ['a redirect', 302, 'the identity provider responded with 302'],
  ])('(%s) is a failure, even with keys', async (_, status, message) => {
    const text = JSON.stringify({ keys: [ec] });
    respond = (response) => void response.writeHead(status, { location: `${url}/elsewhere` }).end(text);
    await expect(download()).rejects.toMatchObject({ name: 'UnusableKeys', message });
    expect(asked).toHaveLength(1);
  });

  it.each(['{}', 'null', '7', '"keys"', '[]', '{"keys":null}', '{"keys":{}}', '{"keys":"x"}'])(
    '(%s) is a failure',
    async (text) => {
      respond = (response) => void response.end(text);
      await expect(download()).rejects.toThrow('the response is not a key set');
    },
  );

  it('(no JSON) is a failure with its cause', async () => {
    respond = (response) => void response.end('<html>');
    await expect(download()).rejects.toMatchObject({
      message: 'the response is not JSON',
      cause: expect.any(SyntaxError),
    });
  });

  it('(late) is a failure', async () => {
    respond = () => undefined;
    await expect(download(20)).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

describe('a published key', () => {
  it.each(['RS256', 'ES256', 'ES384', 'ES512', 'EdDSA'])(
    'verifies signatures without naming its algorithm: %s',
    async (alg) => {
      publish(await publicKey(alg));
      expect(await finds(alg)).toBe(true);
    },
  );

  it.each([
    ['is for encryption', { use: 'enc' }],
    ['has another algorithm', { alg: 'HS256' }],
    ['has an algorithm that is no text', { alg: 7 }],
    ['has an unknown type', { kty: 'toString' }],
    ['has no type', { kty: undefined }],
    ['has a type that is no text', { kty: ['EC'] }],
    ['has another type than its parameters', { kty: 'RSA' }],
    ['has an unknown curve', { crv: 'P-1' }],
    ['has the parameters of another curve', { crv: 'P-384' }],
    ['is private', { d: 'AAAA' }],
    ['is also symmetric', { k: 'AAAA' }],
  ])('that %s does not verify signatures, and leaves the others usable', async (_, changes) => {
    publish({ ...ec, ...changes });
    expect(await usable()).toBe(false);
    publish(null, 7, 'x', { ...ec, kid: 'a', ...changes }, { ...ec, kid: 'b' });
    expect([await finds('ES256', 'a'), await finds('ES256', 'b')]).toEqual([false, true]);
  });

  it('that is a complete private key does not verify signatures', async () => {
    publish(await exportJWK((await generateKeyPair('ES256', { extractable: true })).privateKey));
    expect(await usable()).toBe(false);
  });

  it('that is valid, but of an algorithm that is not accepted, does not verify signatures', async () => {
    const rsa = await publicKey('RS256');
    publish({ ...rsa, alg: 'PS256' });
    expect(await usable()).toBe(false);
    publish({ ...rsa, alg: 'RS256' });
    expect(await usable()).toBe(true);
  });

  it('that is symmetric does not verify signatures', async () => {
    publish({ kty: 'oct', k: 'AAAA', alg: 'HS256' }, { kty: 'oct', k: 'AAAA' });
    expect(await usable()).toBe(false);
  });
});
