// Creates the register of countries for the demo form through the register API: ISO 3166-1, in English and French. An
// existing register is left unchanged, so that its edits are not lost.
import english from 'i18n-iso-countries/langs/en.json' with { type: 'json' };
import french from 'i18n-iso-countries/langs/fr.json' with { type: 'json' };
import { sendJson } from './send-json.ts';

export const countriesName = 'countries';

/**
 * Country codes that ISO 3166-1 reserves for its users. The package i18n-iso-countries uses one of them, XK, for
 * Kosovo.
 */
const userAssigned = /^(?:AA|Q[M-Z]|X[A-Z]|ZZ)$/;

const frenchNames: Record<string, string | string[] | undefined> = french.countries;

/** Countries such as `{value: 'DE', label: 'Germany', labelFr: 'Allemagne'}`, sorted by English name. */
export const countries = Object.entries<string | string[]>(english.countries)
  .filter(([code]) => !userAssigned.test(code))
  .map(([value, name]) => ({ value, label: firstOf(name), labelFr: firstOf(frenchNames[value] ?? name) }))
  .sort((a, b) => a.label.localeCompare(b.label, 'en'));

/** Returns the official name, which the package lists before its variants. */
function firstOf(name: string | string[]): string {
  return typeof name === 'string' ? name : (name[0] ?? '');
}

export interface RegisterConnection {
  /** Base URLs of the form service and of the platform server. */
  formsUrl: string;
  platformUrl: string;
  /** Access token of an administrator of forms and of configuration. */
  token: string;
}

/** Creates the register, and lets applicants without an account read it. Throws if a request fails. */
export async function createCountriesRegister({ formsUrl, platformUrl, token }: RegisterConnection): Promise<void> {
  const send = async (method: string, url: string, body: object): Promise<void> => {
    const { status, text } = await sendJson({ method, url, token, body });
    if (status < 300 || status === 409) return;
    throw new Error(`The register of countries was not created: ${status} to ${method}: ${text}`);
  };
  const description = 'Countries of ISO 3166-1, in English and French';
  const register = { name: countriesName, description, entries: countries };
  await send('POST', `${formsUrl}/form/v1/registers`, register);
  // The register API cannot set anonymousRead. Only an update of the register's configuration definition can. It also
  // follows if the register exists, because an earlier start may have been interrupted before it.
  const update = { [`data-register:${countriesName}`]: { anonymousRead: true } };
  const definitions = `${platformUrl}/configuration/v2/configuration/platform/configuration-service`;
  await send('PATCH', definitions, { operation: 'UPDATE', update });
}
