// Tests how client addresses are normalised, and which proxies may state the client's address.
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressOf, createForwarded, createTrust, networkOf } from './client-address.ts';
import { ownCallHeaders } from './own-calls.ts';

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:DB8:0:0:1::', '2001:db8:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
    // A translator in front of an IPv6 cluster writes the addresses of all IPv4 clients like this.
    ['64:ff9b::192.0.2.1', '192.0.2.1'],
    ['[64:FF9B::c000:201]:1234', '192.0.2.1'],
    ['64:ff9b::1:c000:201', '64:ff9b:0:0::/64'],
    ['64:ff9b:1::192.0.2.1', '64:ff9b:1:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['[::ffff:192.0.2.1%eth0]:80', '192.0.2.1'],
    ['[fe80::1%eth0]:80', 'fe80:0:0:0::/64'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1::203.0.113.7', '2001:db8:1:0::/64'],
    ['1::', '1:0:0:0::/64'],
    ['010.0.0.1', 'unknown'],
    ['192.0.2.1, 192.0.2.2', 'unknown'],
    ['::', '0:0:0:0::/64'],
    ['', 'unknown'],
    ['nonsense', 'unknown'],
    // Some proxies add the port to the address.
    ['192.0.2.1:1234', '192.0.2.1'],
    ['[2001:db8::1]:1234', '2001:db8:0:0::/64'],
    ['192.0.2.1:', 'unknown'],
    ['[nonsense]:1', 'unknown'],
  ])('of %s is %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  it('is the same for every notation of an address, with or without a port', () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6()).filter((text) => isIP(text) !== 0);
    const port = fc.integer({ min: 0, max: 65_535 });
    fc.assert(
      fc.property(address, port, (text, number) => {
        const withPort = isIP(text) === 4 ? `${text}:${number}` : `[${text}]:${number}`;
        const zoned = isIP(text) === 4 ? `::ffff:${text}` : `${text.toUpperCase()}%eth0`;
        expect([networkOf(withPort), networkOf(zoned)]).toEqual([networkOf(text), networkOf(text)]);
        expect(isIP(addressOf(withPort) ?? '')).not.toBe(0);
      }),
    );
  });
});

it('an IPv4 address below 64:ff9b::/96 is not a trusted proxy, because clients may write it', () => {
  expect(createTrust(['uniquelocal'])('64:ff9b::10.0.0.1', 0)).toBe(false);
});

describe('a call of this process to itself', () => {
  const called = (headers: Record<string, string>) => {
    const request = { headers: { 'x-forwarded-for': '192.0.2.7', ...headers }, socket: { remoteAddress: '127.0.0.1' } };
    return createForwarded(['10.0.0.0/8'])(request as unknown as IncomingMessage).address;
  };

  it('passes on the address of the client, even if the machine itself is not a trusted proxy', () => {
    expect(called(ownCallHeaders)).toBe('192.0.2.7');
  });

  it('is not confused with the call of another process on the machine', () => {
    for (const value of ['', 'guessed', `${Object.values(ownCallHeaders)[0]}x`])
      expect(called({ 'x-formgate-own-call': value })).toBe('127.0.0.1');
    expect(called({})).toBe('127.0.0.1');
  });
});

describe('the host and the protocol', () => {
  const seen = (proxies: number | string[], headers: Record<string, string>) => {
    const request = { headers: { host: 'inner', ...headers }, socket: { remoteAddress: '10.0.0.1' } };
    const { host, protocol } = createForwarded(proxies)(request as unknown as IncomingMessage);
    return `${protocol}://${host}`;
  };

  it.each<[string, number | string[], Record<string, string>, string]>([
    ['the only trusted proxy', 1, { host: 'evil, app', proto: 'https, http', for: '192.0.2.7' }, 'http://app'],
    [
      'the outer one of two',
      2,
      { host: 'evil, app, b', proto: 'http, https, http', for: '192.0.2.7, c' },
      'https://app',
    ],
    ['the outer one, if only it has set them', 2, { host: 'app', proto: 'https', for: '192.0.2.7, c' }, 'https://app'],
    ['a proxy that sets no address', 1, { host: 'evil, app', proto: 'http, https' }, 'https://app'],
    [
      'the outermost proxy of a trusted network',
      ['10.0.0.0/8'],
      { host: 'evil, app, b', proto: 'http, https, http', for: '10.1.1.1, 192.0.2.7, 10.0.0.2' },
      'https://app',
    ],
    ['no proxy, if the peer is not trusted', 0, { host: 'evil', proto: 'https', for: '192.0.2.7' }, 'http://inner'],
    ['no proxy, if the headers are empty', 1, { host: '', proto: ' , ', for: '192.0.2.7' }, 'http://inner'],
  ])('are those that %s saw, although a client may send these headers too', (_which, proxies, sent, expected) => {
    const headers = Object.fromEntries(Object.entries(sent).map(([name, value]) => [`x-forwarded-${name}`, value]));
    expect(seen(proxies, headers)).toBe(expected);
  });
});

describe('a list of trusted proxies', () => {
  it.each([
    ['loopback', '127.3.2.1', true],
    ['loopback', '::1', true],
    ['loopback', '::ffff:127.0.0.1', true],
    ['uniquelocal', '[fd00::1]:443', true],
    ['10.0.0.0/8', '10.2.3.4:5678', true],
    ['10.0.0.0/8', '11.2.3.4', false],
    ['::ffff:10.0.0.0/104', '10.2.3.4', true],
    ['::ffff:10.0.0.0/104', '11.2.3.4', false],
    ['192.0.2.1', '192.0.2.1', true],
    ['192.0.2.1', '192.0.2.10', false],
    ['2001:db8::/32', '2001:db8:ffff::1%eth0', true],
    ['2001:db8::/32', 'nonsense', false],
  ])('%s, asked about %s: %s', (listed, written, isTrusted) => {
    expect(createTrust([listed])(written, 0)).toBe(isTrusted);
  });
});
