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
  {
    file: 'src/token-handler/clients/provided-clients.ts',
    text: "return { kind: 'refused', code: undefined };",
    changes: [
      ["'refused'", '""'],
      ["{ kind: 'refused', code: undefined }", '{}'],
    ],
    kind: 'equivalent',
    why: 'every judgement that is neither accepted nor failed is a refusal.',
  },
  {
    file: 'src/token-handler/clients/provided-clients.ts',
    text: "if (isRefused) return { kind: 'refused', code: /^[a-z_]{1,60}$/.test(error.error) ? error.error : undefined };",
    changes: [["'refused'", '""']],
    kind: 'equivalent',
    why: 'every judgement that is neither accepted nor failed is a refusal.',
  },
  {
    file: 'src/token-handler/clients/provider-registration.ts',
    text: 'const isClientError = status !== undefined && status >= 400 && status < 500;',
    changes: [['status !== undefined', 'true']],
    kind: 'equivalent',
    why: 'a comparison of undefined with a number is false.',
  },
  {
    file: 'src/token-handler/clients/provider-registration.ts',
    text: '} catch {',
    changes: [
      ['{ return undefined; }', '{}'],
      ['{ return false; }', '{}'],
    ],
    kind: 'equivalent',
    why: 'a function without a return statement returns undefined, which is as false as false.',
  },
];
