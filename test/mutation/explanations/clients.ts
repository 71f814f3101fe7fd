// The mutants that survive in the code for tenants' clients, and why they do no harm.
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
  {
    file: 'src/token-handler/clients/background-tasks.ts',
    text: 'const task = run(about, work, lastTry).finally(() => running.delete(task));',
    changes: [['() => running.delete(task)', '() => undefined']],
    kind: 'performance only',
    why: 'a completed task stays in memory; at the end of the process, waiting for it takes no time.',
  },
  {
    file: 'src/token-handler/clients/catalog.ts',
    text: 'return clients.sort((a, b) => (a.id < b.id ? -1 : 1));',
    changes: [['a.id < b.id', 'a.id <= b.id']],
    kind: 'equivalent',
    why: 'the ids of the clients in the list are different.',
  },
  {
    file: 'src/token-handler/clients/provided-clients.ts',
    text: 'if (addresses.insecure) oidc.allowInsecureRequests(configuration);',
    changes: [['addresses.insecure', 'true']],
    kind: 'second barrier',
    why: 'if no address of the operator uses http, `addresses.fetch` calls no URL with http: it replaces or refuses it.',
  },
  {
    file: 'src/token-handler/clients/provided-clients.ts',
    text: 'if (error instanceof oidc.ResponseBodyError) {',
    changes: [['error instanceof oidc.ResponseBodyError', 'true']],
    kind: 'equivalent',
    why: 'of the other errors, only a challenge has a status, and it has no code: with 401, it is refused without a code either way.',
  },
  {
    file: 'src/token-handler/clients/provider-registration.ts',
    text: 'const isSuccess = (status: number) => status >= 200 && status < 300;',
    changes: [['status >= 200', 'true']],
    kind: 'equivalent',
    why: 'the only lower status is 0, for which there is no body, and so no client.',
  },
  {
    file: 'src/token-handler/clients/provider-registration.ts',
    text: 'if (error instanceof PlatformError) return { status: 0, body: undefined };',
    changes: [['{ status: 0, body: undefined }', '{}']],
    kind: 'equivalent',
    why: 'an undefined status is no success and none of the refusals, like 0.',
  },
  {
    file: 'src/token-handler/clients/registrar.ts',
    text: "const mayExist = outcome.kind === 'failed' && outcome.mayExist;",
    changes: [["outcome.kind === 'failed'", 'true']],
    kind: 'equivalent',
    why: 'no other outcome has the member; the check satisfies the type checker.',
  },
];
