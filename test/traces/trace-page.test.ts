// Tests how the section "Traces" of docs/ARCHITECTURE.md is read and written.
import { expect, test } from 'vitest';
import { documentedModules, withTrace } from './trace-page.ts';

const page = `# Page

## Traces

### One

About one, see \`src/forms/start.ts\`.

| module | what it does |
| --- | --- |
| \`src/forms/b.ts\` | Second by name |
| \`src/forms/a.ts\` | Goes |

### Two

Nothing yet.

## After
`;

test('a new recording keeps the order and descriptions of the modules that the page already lists', () => {
  const modules = ['src/forms/b.ts', 'src/forms/c.ts', 'src/platform/events.ts', 'src/service/http/http-app.ts'];
  const written = withTrace(page, { name: 'One', modules });
  expect(written).toContain(`About one, see \`src/forms/start.ts\`.

| module | what it does |
| --- | --- |
| \`src/forms/b.ts\` | Second by name |
| \`src/forms/c.ts\` |  |

HTTP: \`src/service/http/http-app.ts\`.

Shared: \`src/platform/events.ts\`.

### Two`);
  expect(withTrace(written, { name: 'One', modules })).toBe(written);
});

test('a trace without a list gets one, and other sections do not change', () => {
  const written = withTrace(page, { name: 'Two', modules: ['reconciler/run.ts'] });
  expect(documentedModules(written, 'Two')).toEqual(['reconciler/run.ts']);
  expect(written).toContain('| `src/forms/a.ts` | Goes |');
  expect(written.endsWith('\n## After\n')).toBe(true);
  expect(() => withTrace(page, { name: 'Three', modules: [] })).toThrow('no heading');
});
