// Prints the regular expressions that the product builds from texts with `RegExp`, as JSON: for each expression, the
// place (file and line) that builds it. Run by regular-expressions.ts in a process of its own, because the modules must
// be loaded after `RegExp` is replaced.
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const found = new Map<string, object>();

/** Records the expression if the product itself, and not a package, has built it. */
function record(expression: RegExp): RegExp {
  const [, file, line] = /(file:\/\/[^):]+):(\d+)/.exec(new Error('place').stack?.split('\n')[3] ?? '') ?? [];
  const path = file === undefined ? '' : relative(root, fileURLToPath(file));
  if (/^(?:src|reconciler)\//.test(path))
    found.set(`${path} ${expression}`, { place: `${path}:${line}`, path, expression: String(expression) });
  return expression;
}

globalThis.RegExp = new Proxy(RegExp, {
  construct: (target, [pattern, flags]) => record(new target(pattern, flags)),
  apply: (target, _this, [pattern, flags]) => record(target(pattern, flags)),
});

const { formFormats } = await import('../../src/forms/definitions/formats.ts');
const { createDataBody } = await import('../../src/forms/forms/schema.ts');
formFormats('urn:example');
createDataBody('urn:example');
await import('../../src/platform-server/seed-file.ts');
await import('../../src/service/clients/client-rules.ts');
await import('../../src/service/operations/duration.ts');
await import('../../src/token-handler/sign-in/schema.ts');
await import('../../src/token-handler/targets/path.ts');
await import('../../src/token-handler/targets/response-headers.ts');
process.stdout.write(JSON.stringify([...found.values()]));
