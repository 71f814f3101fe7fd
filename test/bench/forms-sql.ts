// Contender: the form service's SQL on a bare pool, without HTTP, with the same number of concurrent callers.
import pg from 'pg';
import { ownUsage } from './contender.ts';
import { createStatements, type FormsSettings, type Statements } from './forms-statements.ts';

export interface SqlRun {
  operation: 'PUT' | 'GET';
  requests: number;
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

async function run({ operation, requests, callers, data }: SqlRun): Promise<number> {
  let next = 0;
  const caller = async () => {
    while (next < requests) {
      const form = forms[next % forms.length];
      next += 1;
      if (!form || !statements) throw new Error('not set up');
      if (operation === 'PUT') await statements.put(form, data, '{}');
      else await statements.get(form);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return requests;
}
