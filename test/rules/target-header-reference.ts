// Generates the table of docs/target-headers.md from the list of untrusted headers.
import type { UntrustedHeaders } from '../../src/token-handler/targets/untrusted-headers.ts';
import { withMarkedPart } from './marked-part.ts';

const marks = { begin: '<!-- headers: written by npm run docs -->', end: '<!-- end of headers -->' };

/** Returns the page with its table of headers replaced. */
export function withHeaderTable(page: string, groups: readonly UntrustedHeaders[]): string {
  const rows = groups.map(
    ({ source, claim, names }) => `| ${source} | ${claim} | ${names.map((name) => `\`${name}\``).join(', ')} |`,
  );
  return withMarkedPart(page, marks, ['| believed by | claim | headers |', '| --- | --- | --- |', ...rows].join('\n'));
}
