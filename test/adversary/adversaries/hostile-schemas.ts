// The administrator of a tenant writes JSON Schemas that take very long to evaluate: in a configuration definition, and
// as the data schema of a form that is then submitted. Applicants submit data with half a million errors.
import { setTimeout as delay } from 'node:timers/promises';
import type { Adversary, Attack } from './adversary.ts';
import { anyReplica, type Response, send, swarm } from './hostile-client.ts';

const attackText = `${'a'.repeat(30)}!`;

/** JSON Schemas that take very long to evaluate, for an object with the member `q`. */
const schemas: object[] = [
  { properties: { q: { type: 'string', pattern: '^(a+)+$' } } },
  { properties: { q: { type: 'string', pattern: '^(a|aa)+$' } } },
  { properties: { q: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' } } },
  { patternProperties: { '^(q+)+$': {} }, propertyNames: { pattern: '^([a-z]+)*$' } },
  { properties: { q: { allOf: Array.from({ length: 40 }, () => ({ pattern: '^(a+)+$' })) } } },
];

export const hostileConfigurationSchemas: Adversary = {
  name: 'hostile-configuration-schemas',
  about: 'a backtracking pattern in the schema of a configuration, and values that trigger it',
  async run({ addresses, random, signal }) {
    const token = addresses.tokens.hostileAdministrator;
    const write = (path: string, update: object) =>
      send(`${anyReplica(addresses, 'platform-server', random)}/configuration/v2/configuration/${path}`, {
        ...{ method: 'PATCH', token, body: { operation: 'UPDATE', update }, signal },
      });
    await swarm(signal, 2, async () => {
      const name = random.word(8);
      const configurationSchema = { type: 'object', ...random.pick(schemas) };
      await write('platform/configuration-service', { [`evil:${name}`]: { configurationSchema } });
      await write(`evil/${name}`, { q: attackText, [`${'q'.repeat(40)}!`]: attackText });
    });
  },
};

export const hostileSubmits: Adversary = {
  name: 'hostile-submits',
  about: '20 concurrent submits against a data schema that backtracks',
  async run(attack) {
    const { random, signal } = attack;
    const definitionId = `evil-${random.word(6)}`;
    await define(attack, definitionId, { type: 'object', ...random.pick(schemas) });
    const forms = await Promise.all(
      Array.from({ length: 20 }, () => createFilled(attack, definitionId, JSON.stringify({ q: attackText }))),
    );
    const submits = forms.map((url) => swarm(signal, 1, () => submit(attack, url)));
    await Promise.all(submits);
  },
};

export const wrongItems: Adversary = {
  name: 'wrong-items',
  about: 'submits of data with 190,000 wrong items',
  needsStores: true,
  async run(attack) {
    const { random, signal, complain } = attack;
    const definitionId = `many-${random.word(6)}`;
    await define(attack, definitionId, {
      type: 'object',
      properties: { items: { type: 'array', items: { type: 'string' } } },
    });
    const url = await createFilled(attack, definitionId, `{"items":[${'1,'.repeat(189_999)}1]}`);
    await swarm(signal, 2, async () => {
      const { status, text } = await submit(attack, url);
      if (status === 0 || status === 503 || status === 404) return;
      if (status !== 400) return complain(`190,000 wrong items got ${status}: ${text.slice(0, 200)}`);
      const { errors = [] }: { errors?: unknown[] } = JSON.parse(text);
      if (errors.length > 20) complain(`190,000 wrong items gave ${errors.length} errors`);
    });
  },
};

/** Writes a form definition of the hostile tenant. */
async function define({ addresses, signal }: Attack, id: string, dataSchema: object): Promise<void> {
  const definition = { id, name: 'Evil', anonymousApply: true, applicantRoles: [], clerkRoles: [], dataSchema };
  const url = `${addresses.fronts['platform-server']}/configuration/v2/configuration/platform/form-service`;
  const body = { operation: 'UPDATE', update: { [id]: definition } };
  const token = addresses.tokens.hostileAdministrator;
  await repeated(signal, () => send(url, { method: 'PATCH', token, body, signal }));
}

/** Statuses of a call for which other attacks of the hostile tenant have left no room, or no definition yet. */
const early = [0, 404, 429, 503];

async function repeated(signal: AbortSignal, call: () => Promise<Response>): Promise<Response> {
  let response = await call();
  for (let tries = 1; early.includes(response.status) && tries < 50 && !signal.aborted; tries += 1) {
    await delay(200);
    response = await call();
  }
  return response;
}

/** Creates a draft of the hostile tenant, saves the JSON text `data` as its form data, and returns its URL. */
async function createFilled(
  { addresses, random, signal, complain }: Attack,
  definitionId: string,
  data: string,
): Promise<string> {
  const token = addresses.tokens.hostileIntake;
  const forms = `${anyReplica(addresses, 'forms', random)}/form/v1/forms`;
  const channels = [{ channel: 'email', address: `${random.word(10)}@example.net` }];
  const draft = { definitionId, applicant: { addressAs: 'Trudy', channels } };
  const created = await repeated(signal, () => send(forms, { method: 'POST', token, body: draft, signal }));
  const url = `${forms}/${/"id":"([^"]+)"/.exec(created.text)?.[1] ?? 'none'}`;
  const saved = await send(`${url}/data`, { method: 'PUT', token, body: `{"data":${data},"files":{}}`, signal });
  if (created.status === 201 && saved.status === 400)
    complain(`the data of the attack was refused: ${saved.text.slice(0, 200)}`);
  return url;
}

function submit({ addresses, signal }: Attack, url: string): Promise<Response> {
  return send(url, { method: 'POST', token: addresses.tokens.hostileIntake, body: { operation: 'submit' }, signal });
}
