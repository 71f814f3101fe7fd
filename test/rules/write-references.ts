// `npm run docs`: rewrites the pages that are generated from code, and the generated parts of the chart.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCatalogue } from '../../dev/monitoring/catalogue.ts';
import { buildDashboards, dashboardFile } from '../../dev/monitoring/dashboards/dashboards.ts';
import { metricsPage } from '../../dev/monitoring/metrics-page.ts';
import { frenchOverride } from '../../src/forms/notices/notification-type.ts';
import { events } from '../../src/forms/outbox/event-catalogue.ts';
import { renamedSettings } from '../../src/service/operations/renamed-settings.ts';
import { originWideHeaders } from '../../src/token-handler/targets/origin-wide-headers.ts';
import { untrustedHeaders } from '../../src/token-handler/targets/untrusted-headers.ts';
import { mutationPage, readResults } from '../mutation/page.ts';
import { auditReference, auditSchema } from './audit-reference.ts';
import { chartParts, describedValues, withSettings, withValuesTable } from './chart-values.ts';
import { configurationReference, processes } from './configuration-reference.ts';
import { errorPage } from './error-reference.ts';
import { withEventTable } from './event-reference.ts';
import { formStatusPage } from './form-status-reference.ts';
import { provedExpressionsText } from './regular-expressions.ts';
import { routedProcesses } from './route-tables.ts';
import { routesReference } from './routes-reference.ts';
import { withHeaderTables } from './target-header-reference.ts';

const root = join(import.meta.dirname, '../..');

function rewrite(path: string, change: (text: string) => string): void {
  const file = join(root, path);
  writeFileSync(file, change(readFileSync(file, 'utf8')));
}

const values = describedValues(readFileSync(join(root, 'charts/formgate/values.yaml'), 'utf8'));
rewrite('docs/configuration.md', () => configurationReference(processes));
writeFileSync(join(root, 'docs/notices/fr.json'), `${JSON.stringify(frenchOverride(events), undefined, 2)}\n`);
rewrite('docs/notices.md', (page) => withEventTable(page, events));
writeFileSync(join(root, 'docs/errors.md'), errorPage);
writeFileSync(join(root, 'docs/form-statuses.md'), formStatusPage);
writeFileSync(join(root, 'docs/routes.md'), routesReference(routedProcesses));
rewrite('docs/target-headers.md', (page) => withHeaderTables(page, untrustedHeaders, originWideHeaders));
writeFileSync(join(root, 'docs/metrics.md'), metricsPage(createCatalogue()));
writeFileSync(join(root, 'docs/audit.md'), auditReference(routedProcesses));
writeFileSync(join(root, 'docs/audit-event.schema.json'), auditSchema());
writeFileSync(join(root, 'test/rules/linear-expressions.json'), provedExpressionsText(root));
writeFileSync(join(root, 'docs/mutation.md'), mutationPage(readResults()));
rewrite('charts/formgate/README.md', (readme) => withValuesTable(readme, values));
rewrite('charts/formgate/values.schema.json', (schema) => withSettings(schema, chartParts));
writeFileSync(
  join(root, 'charts/formgate/files/renamed-settings.json'),
  `${JSON.stringify(renamedSettings, undefined, 2)}\n`,
);
for (const [name, dashboard] of buildDashboards(createCatalogue()))
  writeFileSync(join(root, `charts/formgate/dashboards/${name}.json`), dashboardFile(dashboard));
