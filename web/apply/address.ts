// Reads and builds the addresses of the pages. The form's id and the page are in the fragment, so that they do not
// appear in access logs.

export interface Address {
  tenant: string;
  definition: string;
}

/** Returns the tenant and the definition that the path names; undefined if it names none. */
export function addressOf(pathname: string): Address | undefined {
  const [, tenant, definition] = /^\/apply\/([^/]+)\/([^/]+)\/?$/.exec(pathname) ?? [];
  if (tenant === undefined || definition === undefined) return undefined;
  try {
    return { tenant: decodeURIComponent(tenant), definition: decodeURIComponent(definition) };
  } catch {
    return undefined;
  }
}

/** Returns the path of the pages for a definition. `addressOf` reads it. */
export function pathnameOf({ tenant, definition }: Address): string {
  return `/apply/${encodeURIComponent(tenant)}/${encodeURIComponent(definition)}`;
}

export interface Fragment {
  form: string | undefined;
  /**
   * Number of a page, counted from 1. `check` is the summary; `delete` is the page that asks the person to confirm
   * the deletion of the draft.
   */
  page: number | 'check' | 'delete' | undefined;
}

export function fragmentOf(hash: string): Fragment {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const page = parameters.get('page') ?? '';
  return {
    form: parameters.get('form') || undefined,
    page: page === 'check' || page === 'delete' ? page : /^[1-9]\d{0,3}$/.test(page) ? Number(page) : undefined,
  };
}

/** True for a UUID, which every form has as its id. */
export function isFormId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

export function hashOf({ form, page }: Fragment): string {
  const parameters = new URLSearchParams({
    ...(form !== undefined && { form }),
    ...(page !== undefined && { page: String(page) }),
  });
  return parameters.size > 0 ? `#${parameters}` : '';
}
