// The mutants that survive in the clients of tenants, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const clients: readonly Explanation[] = [
  {
    file: 'src/token-handler/clients/client.ts',
    text: "return urn ?? '';",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'the result of a schema that has reported an issue is not used.',
  },
  {
    file: 'src/token-handler/clients/client.ts',
    text: 'return targetId !== undefined && isObject(entry) ? { id: targetId, ...entry } : entry;',
    changes: [
      ['targetId !== undefined && isObject(entry)', 'true'],
      ['targetId !== undefined && isObject(entry)', 'targetId !== undefined || isObject(entry)'],
      ['targetId !== undefined', 'true'],
    ],
    kind: 'equivalent',
    why: 'an entry that is no object, or has no id, is refused either way.',
  },
];
