// An administrator of the honest tenant: changes her register, reads it back after each change, and lists forms.
import { isDeepStrictEqual } from 'node:util';
import { live, type Surroundings, think } from './persona.ts';
import { mustSee } from './recorder.ts';
import { createSender } from './requests.ts';

const name = 'honest-register';

export async function liveAsAdministrator(around: Surroundings): Promise<void> {
  const { recorder, random, world } = around;
  const { fronts, tokens } = world.addresses;
  const { send, close } = createSender({
    authorization: `Bearer ${tokens.administrator}`,
    'x-forwarded-for': '10.2.0.1',
  });
  const registers = `${fronts.forms}/form/v1/registers`;
  let exists = false;
  await live(around, async () => {
    const entries = Array.from({ length: random.integer(1, 30) }, () => random.word(8));
    await recorder.measure('write register', async () => {
      if (exists) return void (await send(`${registers}/${name}`, { method: 'PATCH', body: { entries } }));
      const body = { name, description: 'Register of an honest administrator', entries };
      await send(registers, { method: 'POST', body, expect: 201 });
      exists = true;
    });
    await think(around);
    await recorder.measure('read register', async () => {
      const { json } = await send(`${registers}/${name}`);
      mustSee(isDeepStrictEqual((json as { entries?: unknown }).entries, entries), 'a register has other entries');
    });
    await think(around);
    await recorder.measure('list forms', async () => {
      const { json } = await send(`${fronts.forms}/form/v1/forms?top=5`);
      mustSee(Array.isArray((json as { results?: unknown }).results), 'a list of forms is not a list');
    });
  });
  close();
}
