// Contender: a minimal Express handler with the form service's SQL. It parses JSON and runs the statement; it checks no
// token, writes no log and has no metrics.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import pg from 'pg';
import { ownUsage } from './contender.ts';
import { createStatements, type FormsSettings } from './forms-statements.ts';

let url = '';

process.on('message', async (message: { settings: FormsSettings } | 'url' | 'usage') => {
  if (message === 'usage') process.send?.(ownUsage());
  else if (message === 'url') process.send?.({ url });
  else {
    url = await start(message.settings);
    process.send?.({});
  }
});

async function start(settings: FormsSettings): Promise<string> {
  const statements = createStatements(new pg.Pool({ connectionString: settings.databaseUrl, max: 10 }), settings);
  const forms = new Map(settings.forms.map((form) => [form.formId, form]));
  const app = express();
  app.use(express.json({ limit: 1_048_576 }));
  app.put('/form/v1/forms/:formId/data', async (request, response) => {
    const { data, files } = request.body;
    const form = { formId: request.params.formId, codeHash: '' };
    response.type('json').send(await statements.put(form, JSON.stringify(data), JSON.stringify(files)));
  });
  app.get('/form/v1/forms/:formId/data', async (request, response) => {
    const form = forms.get(request.params.formId);
    response.type('json').send(form && (await statements.get(form)));
  });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
