// Contender: the form service's SQL from a bare pool, as fast as so many callers at once can ask for it. No HTTP.
import pg from 'pg';
import { ownUsage } from './contender.ts';
import { createStatements, type FormsSettings, type Statements } from './forms-statements.ts';

export interface SqlRun {
  operation: 'PUT' | 'GET';
  seconds: number;
  callers: number;
  data: string;
}

let statements: Statements | undefined;
let forms: FormsSettings['forms'] = [];

process.on('message', async (message: { settings: FormsSettings } | { run: SqlRun } | 'usage') => {
  if (message === 'usage') process.send?.(ownUsage());
  else if ('run' in message) process.send?.({ requests: await run(message.run) });
  else {
    const { settings } = message;
    statements = createStatements(new pg.Pool({ connectionString: settings.databaseUrl, max: 10 }), settings);
    forms = settings.forms;
    process.send?.({});
  }
});

async function run({ operation, seconds, callers, data }: SqlRun): Promise<number> {
  const end = Date.now() + seconds * 1000;
  const caller = async (index: number) => {
    let count = 0;
    for (let next = index; Date.now() < end; next += 1, count += 1) {
      const form = forms[next % forms.length];
      if (!form || !statements) throw new Error('not set up');
      if (operation === 'PUT') await statements.put(form, data, '{}');
      else await statements.get(form);
    }
    return count;
  };
  const counts = await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
  return counts.reduce((sum, count) => sum + count, 0);
}
