// The pages of an access service, as a person clicks through them, whichever access service it is.
import type { SiteBrowser, Visit } from './site-browser.ts';

/** Goes through a logout at the access service, which asks where it is not sure. Answers the visit that ended it. */
export async function confirmLogout(browser: SiteBrowser, logout: URL | undefined): Promise<Visit> {
  const page = await browser.request(logout ?? '');
  return page.location ? page : browser.submit(page, { logout: 'yes' });
}
