// Templates: the helper `formatDate` accepts `format` only, and ignores the styles that this server's own helper knows.
import type { TenantCode } from '../tenant-code.ts';

const styles = /\s+(?:timeStyle|dateStyle|locale|timeZone)=(?:"[^"]*"|'[^']*')/g;
const call = /\{\{[{&]?\s*formatDate\b[^}]*\}\}/g;

const withoutStyles = (source: string) => source.replace(call, (found) => found.replace(styles, ''));

export function withoutDateStyles(render: TenantCode['render']): TenantCode['render'] {
  return (tenant, template, data) => {
    const parts = Object.entries(template).map(([part, source]) => [
      part,
      typeof source === 'string' ? withoutStyles(source) : source,
    ]);
    return render(tenant, Object.fromEntries(parts), data);
  };
}
