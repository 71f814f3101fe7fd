// Generates the table of events in docs/notices.md from the catalogue of events.
import type { EventEntry } from '../../src/forms/outbox/event-catalogue.ts';

const [begin, end] = ['<!-- events: written by npm run docs -->', '<!-- end of events -->'];

/** Returns the page with its table of events replaced. Throws if the page lacks the marks around the table. */
export function withEventTable(page: string, catalogue: Record<string, EventEntry>): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`The page has no ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${eventTable(catalogue)}\n\n${page.slice(to)}`;
}

function eventTable(catalogue: Record<string, EventEntry>): string {
  const rows = Object.entries(catalogue).map(([kind, { description, payload, notice }]) => {
    const members = Object.keys(payload).map((member) => `\`${member}\``);
    return `| \`${kind}\` | ${description} | ${notice ? 'yes' : 'no'} | ${members.join(', ')} |`;
  });
  return ['| event | when | notice | members of `event.payload` |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
