// Tests the demo's register of countries, which is created through the register API of a form service.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createUrns } from '../../src/service/urn.ts';
import { startTestForms, type TestForms } from '../../test/support/forms.ts';
import { call, roleToken } from '../../test/support/platform.ts';
import { businessLicence, exampleFormData } from './business-licence.ts';
import { countries, countriesName, createCountriesRegister } from './countries.ts';

let forms: TestForms;
let token: string;

beforeAll(async () => {
  forms = await startTestForms();
  const roles = { 'form-service': ['form-admin'], 'configuration-service': ['configuration-admin'] };
  token = await tokenOf(roles);
});

afterAll(() => forms.close());

/** Returns a token that is valid by the clock of the test's form service, which is ahead of real time. */
function tokenOf(roles: Record<string, string[]>): Promise<string> {
  const claims = { exp: Math.floor(forms.now().getTime() / 1000) + 600 };
  return roleToken(forms.platform.access, roles, { realm: 'demo', claims });
}

const create = () => createCountriesRegister({ formsUrl: forms.url, platformUrl: forms.platform.url, token });
const registerUrl = () => `${forms.url}/form/v1/registers/${countriesName}`;

describe('The register of countries', () => {
  it('contains the 249 countries of ISO 3166-1 with names in English and French, and no user-assigned code', () => {
    expect(countries).toHaveLength(249);
    expect(new Set(countries.map(({ value }) => value)).size).toBe(249);
    for (const { value, label, labelFr } of countries) {
      expect(value).toMatch(/^[A-Z]{2}$/);
      expect(label).not.toBe('');
      expect(labelFr).not.toBe('');
    }
    expect(countries).toContainEqual({ value: 'DE', label: 'Germany', labelFr: 'Allemagne' });
    expect(countries.map(({ value }) => value)).not.toContain('XK');
  });

  it('is the register that the demo form names by URN, and contains the country of its example form data', () => {
    const urn = 'urn:example:platform:configuration:v2:/configuration/data-register/countries';
    expect(JSON.stringify(businessLicence(createUrns('urn:example'), 'http://localhost:8080'))).toContain(
      `"register":{"urn":"${urn}"}`,
    );
    expect(countries.map(({ value }) => value)).toContain(exampleFormData.complete.address.country);
  });

  it('is created through the API, and applicants without an account may read it', async () => {
    await create();
    expect((await call(registerUrl(), { token })).body).toMatchObject({ name: countriesName, entries: countries });
    const tenantId = encodeURIComponent(forms.platform.tenant.id);
    const response = await call(`${registerUrl()}/entries?tenantId=${tenantId}`);
    expect(response.status).toBe(200);
    expect(response.body).toEqual(countries);
  });

  it('does not change if it exists', async () => {
    await create();
    await call(registerUrl(), { method: 'PATCH', token, body: { entries: ['Utopia'] } });
    await create();
    expect((await call(registerUrl(), { token })).body).toMatchObject({ entries: ['Utopia'] });
  });

  it('can be read without an account after a start that was interrupted half way', async () => {
    const definitions = `${forms.platform.url}/configuration/v2/configuration/platform/configuration-service`;
    const update = { [`data-register:${countriesName}`]: { anonymousRead: false } };
    await call(definitions, { method: 'PATCH', token, body: { operation: 'UPDATE', update } });
    const tenantId = encodeURIComponent(forms.platform.tenant.id);
    const read = async () => (await call(`${registerUrl()}/entries?tenantId=${tenantId}`)).status;
    await expect.poll(read).not.toBe(200);
    await create();
    await expect.poll(read).toBe(200);
  });

  it('that cannot be created is an error', async () => {
    const other = await tokenOf({ 'form-service': [] });
    const failing = createCountriesRegister({ formsUrl: forms.url, platformUrl: forms.platform.url, token: other });
    await expect(failing).rejects.toThrow('403 to POST');
  });
});
