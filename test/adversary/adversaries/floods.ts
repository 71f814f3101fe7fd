// Floods of requests: register writes of one tenant, requests from many client addresses, requests with invalid tokens,
// and drafts for one mail address.
import { setTimeout as delay } from 'node:timers/promises';
import { definitionId } from '../world/preparation.ts';
import type { Adversary, Attack } from './adversary.ts';
import { anyReplica, send, swarm } from './hostile-client.ts';

export const registerFloods: Adversary = {
  name: 'register-floods',
  about: '16 concurrent register writes of one tenant',
  async run({ addresses, random, signal }) {
    const token = addresses.tokens.hostileAdministrator;
    const entries = Array.from({ length: 3_000 }, (_, index) => ({ label: `Entry ${index}`, value: index }));
    const urlOf = (path = '') => `${anyReplica(addresses, 'forms', random)}/form/v1/registers${path}`;
    const names = Array.from({ length: 8 }, (_, index) => `flood-${index}`);
    for (const name of names)
      await send(urlOf(), { method: 'POST', token, body: { name, description: 'flood', entries: [] }, signal });
    await swarm(signal, 16, () =>
      send(urlOf(`/${random.pick(names)}`), { method: 'PATCH', token, body: { entries }, signal }),
    );
  },
};

export const addressFloods: Adversary = {
  name: 'address-floods',
  about: 'requests through a trusted proxy, each of which claims another client address',
  run: ({ addresses, random, signal }) =>
    swarm(signal, 8, () => {
      const address = random.pick([
        () => Array.from({ length: 4 }, () => random.integer(1, 250)).join('.'),
        () => `1.2.3.4:${random.integer(1, 65_535)}`,
        () => `2001:db8:${random.integer(0, 65_535).toString(16)}:${random.integer(0, 65_535).toString(16)}::1`,
        () => random.word(random.integer(1, 300)),
      ])();
      const [service, path] = random.pick([
        ['forms', '/form/v1/registers/honest-register/entries?tenantId=x'],
        ['token-handler', '/token-handler/v1/targets/api/whoami'],
        ['token-handler', '/token-handler/v1/clients/web/auth?tenant=demo'],
      ] as const);
      return send(`${anyReplica(addresses, service, random)}${path}`, {
        headers: { 'x-forwarded-for': address },
        signal,
      });
    }),
};

export const tokenFloods: Adversary = {
  name: 'token-floods',
  about: 'bearer tokens with unknown keys and issuers',
  run: ({ addresses, random, signal }) =>
    swarm(signal, 6, () => {
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const [, claims = ''] = addresses.tokens.intake.split('.');
      const payload = random.chance(0.5) ? claims : encode({ iss: `http://${random.word(8)}.example`, sub: 'x' });
      const signature = random.bytes(256).toString('base64url');
      const token = `${encode({ alg: 'RS256', kid: random.word(8) })}.${payload}.${signature}`;
      const service = random.pick(['forms', 'platform-server', 'token-handler'] as const);
      const path = {
        forms: '/form/v1/forms',
        'platform-server': '/event/v1/events',
        'token-handler': '/token-handler/v1/clients',
      };
      return send(`${anyReplica(addresses, service, random)}${path[service]}`, { token, signal });
    }),
};

/**
 * Maximum number of mails that the address may get in the first minute: one about the first draft, and one with the
 * code.
 */
const allowedMails = 2;

export const mailFloods: Adversary = {
  name: 'mail-floods',
  about: '40 drafts for one mail address, whose owner must not get 40 mails',
  needsStores: true,
  async run(attack) {
    const { addresses, random, complain } = attack;
    const address = `victim-${random.word(8)}@example.com`;
    const ids = await Promise.all(Array.from({ length: 40 }, () => createDraft(attack, address)));
    const last = ids.findLast((id) => id !== undefined);
    if (last !== undefined) {
      const url = `${addresses.fronts.forms}/form/v1/forms/${last}`;
      const body = { operation: 'send-code' };
      const { status, text } = await send(url, { method: 'POST', token: addresses.tokens.intake, body });
      const isRefused = status !== 202 && status !== 0 && status !== 503;
      if (isRefused) complain(`after 40 drafts, sending a code got ${status} ${text.slice(0, 200)}`);
    }
    await delay(1_500);
    const count = Number(await (await fetch(`${addresses.mailCountUrl}?to=${encodeURIComponent(address)}`)).text());
    if (count > allowedMails) complain(`40 drafts caused ${count} mails to one address`);
  },
};

async function createDraft({ addresses, random, signal }: Attack, address: string): Promise<string | undefined> {
  const applicant = { addressAs: 'You have won a prize', channels: [{ channel: 'email', address }] };
  const url = `${anyReplica(addresses, 'forms', random)}/form/v1/forms`;
  const body = { definitionId, applicant };
  const { text } = await send(url, { method: 'POST', token: addresses.tokens.intake, body, signal });
  return /"id":"([^"]+)"/.exec(text)?.[1];
}
