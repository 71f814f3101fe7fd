// An adversary that tries to read a form with wrong codes while the form is being deleted.
import { definitionId } from '../world/preparation.ts';
import type { Adversary } from './adversary.ts';
import { anyReplica, send, swarm } from './hostile-client.ts';

export const codeRaces: Adversary = {
  name: 'code-races',
  about: 'five wrong codes, concurrent with a deletion of the form',
  run: ({ addresses, random, signal, complain }) =>
    swarm(signal, 3, async () => {
      const { intake, administrator } = addresses.tokens;
      const forms = () => `${anyReplica(addresses, 'forms', random)}/form/v1/forms`;
      const channels = [{ channel: 'email', address: `${random.word(10)}@example.net` }];
      const draft = { definitionId, applicant: { addressAs: 'Mallory', channels } };
      const created = await send(forms(), { method: 'POST', token: intake, body: draft, signal });
      const id = /"id":"([^"]+)"/.exec(created.text)?.[1];
      if (id === undefined) return;
      const guess = () =>
        send(`${forms()}/${id}/data`, {
          token: intake,
          headers: { 'x-form-code': random.word(8).toUpperCase() },
          signal,
        });
      for (let wrong = 0; wrong < 4; wrong += 1) await guess();
      const responses = await Promise.all([
        guess(),
        guess(),
        send(`${forms()}/${id}`, { method: 'DELETE', token: administrator, signal }),
      ]);
      for (const { status, text } of responses)
        if (status === 500) complain(`a wrong code during a deletion got 500: ${text.slice(0, 200)}`);
    }),
};
