// Generates the tables of docs/target-headers.md from the lists of untrusted and of origin-wide headers.
import type { OriginWideHeaders } from '../../src/token-handler/targets/origin-wide-headers.ts';
import type { UntrustedHeaders } from '../../src/token-handler/targets/untrusted-headers.ts';
import { withMarkedPart } from './marked-part.ts';

const untrustedMarks = { begin: '<!-- headers: written by npm run docs -->', end: '<!-- end of headers -->' };
const originWideMarks = {
  begin: '<!-- response headers: written by npm run docs -->',
  end: '<!-- end of response headers -->',
};

/** Returns the page with its tables of headers replaced. */
export function withHeaderTables(
  page: string,
  untrusted: readonly UntrustedHeaders[],
  originWide: readonly OriginWideHeaders[],
): string {
  const requests = untrusted.map(({ source, claim, names }) => `| ${source} | ${claim} | ${listOf(names)} |`);
  const responses = originWide.map(({ source, effect, names }) => `| ${source} | ${effect} | ${listOf(names)} |`);
  const withRequests = withMarkedPart(page, untrustedMarks, table('believed by | claim | headers', requests));
  return withMarkedPart(withRequests, originWideMarks, table('source | effect | headers', responses));
}

function table(heading: string, rows: string[]): string {
  return [`| ${heading} |`, '| --- | --- | --- |', ...rows].join('\n');
}

function listOf(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
