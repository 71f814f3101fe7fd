// Renders templates in the same way as the reference implementation. Its helper `formatDate` knows only the option
// `format`, and uses one time zone and one locale for all tenants. It ignores the other options of this server's own
// helper.
import type { TenantCode } from '../tenant-code.ts';

const ownOptions = /\s+(?:timeStyle|dateStyle|locale|timeZone)=(?:"[^"]*"|'[^']*')/g;
const call = /(\{\{[{&]?\s*formatDate\b)([^}]*)(\}\})/g;
/** The time zone and locale of the reference implementation, as measured. */
const fixed = ' timeZone="America/Edmonton" locale="en-US"';
/** The reference implementation's default format in Luxon tokens, as measured. */
const usualFormat = ' format="ff ZZZZ"';

const asReference = (source: string) =>
  source.replace(call, (_all, begin: string, rest: string, end: string) => {
    const kept = rest.replace(ownOptions, '');
    return `${begin}${kept}${kept.includes(' format=') ? '' : usualFormat}${fixed}${end}`;
  });

export function withReferenceDates(render: TenantCode['render']): TenantCode['render'] {
  return (tenant, template, data) => {
    const parts = Object.entries(template).map(([part, source]) => [
      part,
      typeof source === 'string' ? asReference(source) : source,
    ]);
    return render(tenant, Object.fromEntries(parts), data);
  };
}
