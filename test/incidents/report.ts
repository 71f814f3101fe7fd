// Writes docs/incidents.md from the times of a run.
import { alertNames } from '../monitoring/rules.ts';
import type { Incident } from './incidents.ts';
import { factor } from './scaled-rules.ts';

export interface Measured extends Pick<Incident, 'fault' | 'alert' | 'severity'> {
  /** Seconds from the beginning of the fault until the alert was pending and until it fired. */
  pending: number;
  firing: number;
  /** Seconds from the fix until the alert was inactive. */
  resolved: number;
}

const seconds = (value: number) => value.toFixed(1);

export function report(measured: Measured[]): string {
  const seen = new Set(measured.map(({ alert }) => alert));
  const rows = measured.map(
    ({ fault, alert, severity, pending, firing, resolved }) =>
      `| ${fault} | ${alert} (${severity}) | ${seconds(pending)} | ${seconds(firing)} | ${seconds(resolved)} |`,
  );
  return `# Incidents

\`npm run test:incidents\` runs the processes of \`npm start\` with Postgres, Redis, an OpenID provider and an SMTP server under the
traffic of people, scrapes them with a real Prometheus, and causes one fault after another. Each alert must fire, and must end
after the fix. The rules are the chart's own; all durations in them are divided by ${factor}, and Prometheus scrapes each second. A
second below therefore stands for a minute of production where a rule's duration decides. Durations of Formgate's own checks,
such as the check of the identity provider every 10 s, are not divided.

\`FORMGATE_WRITE_INCIDENTS=1 npm run test:incidents\` writes this page.

| fault | alert | pending after (s) | firing after (s) | ended after the fix (s) |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

${alertsWithout(seen)}
`;
}

function alertsWithout(seen: Set<string>): string {
  const unseen = alertNames().filter((alert) => !seen.has(alert));
  if (unseen.length === 0)
    return "Every alert has an incident. promtool's unit tests (test/monitoring) show that each fires and stays silent as it should.";
  const list = unseen.map((alert) => `- ${alert}`).join('\n');
  return `Alerts that no incident has raised; promtool's unit tests (test/monitoring) show that they fire and stay silent:\n\n${list}`;
}
