// The administrator of a tenant writes a notification template that never finishes rendering, and causes notices that
// use this template.
import { setTimeout as delay } from 'node:timers/promises';
import { definitionId } from '../world/preparation.ts';
import type { Adversary } from './adversary.ts';
import { send, swarm } from './hostile-client.ts';

const depth = 14;
const nested = `${'{{#each @root.event}}'.repeat(depth)}x${'{{/each}}'.repeat(depth)}`;
const templates = [nested, `{{#each @root}}${nested}{{/each}}`, `{{#with (lookup @root "event")}}${nested}{{/with}}`];

export const hostileTemplates: Adversary = {
  name: 'hostile-templates',
  about: 'a notification template of a tenant with nested loops, rendered for each draft',
  async run({ addresses, random, signal }) {
    const { fronts, tokens } = addresses;
    const configuration = `${fronts['platform-server']}/configuration/v2/configuration/platform/notification-service`;
    const body = random.pick(templates);
    const events = ['form-created', 'form-submitted'].map((name) => ({
      ...{ namespace: 'form-service', name },
      templates: { email: { subject: 'Hello', title: '', subtitle: '', body } },
    }));
    const type = { id: 'form-status-updates', name: 'Status', channels: ['email'], events };
    const write = (update: object) =>
      send(configuration, {
        method: 'PATCH',
        token: tokens.hostileAdministrator,
        body: { operation: 'UPDATE', update },
        signal: AbortSignal.timeout(5_000),
      });
    await write({ 'form-status-updates': type });
    await swarm(signal, 1, async () => {
      const applicant = {
        addressAs: 'Trudy',
        channels: [{ channel: 'email', address: `${random.word(10)}@example.net` }],
      };
      const draft = { definitionId, applicant };
      await send(`${fronts.forms}/form/v1/forms`, { method: 'POST', token: tokens.hostileIntake, body: draft, signal });
      await delay(400);
    });
  },
};
