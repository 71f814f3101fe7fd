// A store of refusals that remembers nothing, so that each sync of core clients tries all items again.
import type { Refusals } from '../../reconciler/core-clients/refusals.ts';

export const noRefusals = async (): Promise<Refusals> => ({
  isKnown: () => false,
  add: () => undefined,
  settle: async () => 0,
});
