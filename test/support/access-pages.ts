// Clicks through the pages of the embedded identity provider or of Keycloak.
import type { SiteBrowser, Visit } from './site-browser.ts';

/**
 * Logs out at the identity provider, and confirms the logout if the provider asks for a confirmation. Returns the last
 * visit.
 */
export async function confirmLogout(browser: SiteBrowser, logout: URL | undefined): Promise<Visit> {
  const page = await browser.request(logout ?? '');
  return page.location ? page : browser.submit(page, { logout: 'yes' });
}
