// Generates the table of events in docs/notices.md from the catalogue of events.
import type { EventEntry } from '../../src/forms/outbox/event-catalogue.ts';
import { withMarkedPart } from './marked-part.ts';

const marks = { begin: '<!-- events: written by npm run docs -->', end: '<!-- end of events -->' };

/** Returns the page with its table of events replaced. */
export function withEventTable(page: string, catalogue: Record<string, EventEntry>): string {
  return withMarkedPart(page, marks, eventTable(catalogue));
}

function eventTable(catalogue: Record<string, EventEntry>): string {
  const rows = Object.entries(catalogue).map(([kind, { description, payload, notice }]) => {
    const members = Object.keys(payload).map((member) => `\`${member}\``);
    return `| \`${kind}\` | ${description} | ${notice ? 'yes' : 'no'} | ${members.join(', ')} |`;
  });
  return ['| event | when | notice | members of `event.payload` |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
