// Bodies that are expensive to parse: deep, wide or large JSON, sent by callers with and without roles.
import { definitionId } from '../world/preparation.ts';
import type { Adversary } from './adversary.ts';
import { anyReplica, send, swarm } from './hostile-client.ts';

const mebibyte = 1024 * 1024;

const bodies = {
  deep: `{"data":${'['.repeat(mebibyte / 2 - 100)}${']'.repeat(mebibyte / 2 - 100)}}`,
  wide: `{"data":{${Array.from({ length: 80_000 }, (_, index) => `"k${index}":1`).join(',')}},"files":{}}`,
  numbers: `{"data":[${'1e400,'.repeat(140_000)}1],"files":{}}`,
  prototypes: `{"data":${'{"__proto__":'.repeat(5_000)}1${'}'.repeat(5_000)},"files":{}}`,
  large: `{"data":"${'x'.repeat(3 * mebibyte)}"}`,
};

export const hostileBodies: Adversary = {
  name: 'hostile-bodies',
  about: 'deep, wide and large JSON, with and without a role',
  async run({ addresses, random, signal, complain }) {
    const { hostileIntake, hostileAdministrator } = addresses.tokens;
    await swarm(signal, 2, async () => {
      const [name, body] = random.pick(Object.entries(bodies));
      const token = random.pick([hostileIntake, hostileAdministrator]);
      const path = random.pick(['/00000000-0000-7000-8000-000000000000/data', '']);
      const url = `${anyReplica(addresses, 'forms', random)}/form/v1/forms${path}`;
      const { status } = await send(url, { method: path ? 'PUT' : 'POST', token, body, signal });
      if (status >= 500 && status !== 503) complain(`a ${name} body for ${definitionId} got ${status}`);
    });
  },
};
