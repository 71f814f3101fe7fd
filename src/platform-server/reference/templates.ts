// Templates: the helper `formatDate` accepts `format` only, in one time zone and locale for all tenants, and ignores the
// options that this server's own helper knows.
import type { TenantCode } from '../tenant-code.ts';

const ownOptions = /\s+(?:timeStyle|dateStyle|locale|timeZone)=(?:"[^"]*"|'[^']*')/g;
const call = /(\{\{[{&]?\s*formatDate\b)([^}]*)(\}\})/g;
/** As measured: Luxon's tokens, and the zone and locale of the service. */
const fixed = ' timeZone="America/Edmonton" locale="en-US"';
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
