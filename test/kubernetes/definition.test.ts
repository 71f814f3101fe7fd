// Tests the CustomResourceDefinition of CoreClients on a real API server: its defaults, which resources the API server
// accepts, and with which messages the API server rejects all others.
import { ApiException, ApiextensionsV1Api } from '@kubernetes/client-node';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { coreClientsDefinition } from './chart-parts.ts';
import { type Lab, manifest, startLab } from './lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab?.close());
afterEach(() => lab.removeAll());

/** Returns the message of a rejection; undefined if the resource is accepted. */
async function refusal(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    return `${error.code} ${(JSON.parse(error.body) as { message: string }).message}`;
  }
}

interface Rule {
  rule: string;
  message: string;
  accepted: Record<string, unknown>;
  refused: Record<string, unknown>;
}

const target = (fields: object) => ({ targets: [{ id: 'a', upstream: 'form-service', ...fields }] });
const redirect = (uri: string) => ({ redirectUris: [uri] });

describe('a rule for CoreClients accepts valid resources and rejects others', () => {
  const long = 'a'.repeat(51);
  it.each<Rule>([
    {
      rule: 'a client id is 1 to 50 letters, digits, spaces, hyphens and underscores',
      message: 'must be 1 to 50 letters, digits, spaces, hyphens and underscores',
      accepted: { clientId: 'Permits web_2-b' },
      refused: { clientId: 'permits.web' },
    },
    {
      rule: 'a client id is not a name that JSON parsers reject',
      message: 'must be 1 to 50 letters',
      accepted: { clientId: '__proto' },
      refused: { clientId: '__proto__' },
    },
    {
      rule: 'a client id has at most 50 characters',
      message: 'may not be more than 50',
      accepted: { clientId: long.slice(1) },
      refused: { clientId: long },
    },
    {
      rule: 'a redirect URI is absolute, and http or https',
      message: 'must be an absolute http or https URL',
      accepted: redirect('https://permits.example.org:8443/cb?x=1'),
      refused: redirect('/token-handler/clients/a/callback'),
    },
    {
      rule: 'a redirect URI contains no white space',
      message: 'must be an absolute http or https URL',
      accepted: redirect('http://localhost:3000/cb'),
      refused: redirect('https://permits.example.org/c b'),
    },
    {
      rule: 'a redirect URI contains no backslash',
      message: 'must be an absolute http or https URL',
      accepted: redirect('http://[::1]:3000/cb'),
      refused: redirect('https://permits.example.org\\@evil.example.org'),
    },
    {
      rule: 'a redirect URI has no other scheme',
      message: 'must be an absolute http or https URL',
      accepted: redirect('HTTPS://permits.example.org/'),
      refused: redirect('javascript:alert(1)'),
    },
    {
      rule: 'a redirect URI has no fragment',
      message: 'must not have a fragment',
      accepted: redirect('https://permits.example.org/cb?x=%23'),
      refused: redirect('https://permits.example.org/cb#top'),
    },
    {
      rule: 'a redirect URI contains no credentials',
      message: 'must not hold credentials',
      accepted: redirect('https://permits.example.org/@cb'),
      refused: redirect('https://me:secret@permits.example.org/cb'),
    },
    {
      rule: 'a redirect URI has no wildcard in its host',
      message: 'must not have a wildcard in its host or port',
      accepted: redirect('https://permits.example.org/a/*'),
      refused: redirect('https://*.example.org/cb'),
    },
    {
      rule: 'a redirect URI has a wildcard only at the end of its path',
      message: 'must contain * only as a final /* of its path',
      accepted: redirect('https://permits.example.org/*'),
      refused: redirect('https://permits.example.org/*/cb'),
    },
    {
      rule: 'a redirect URI has no dot segments',
      message: 'must not have a dot segment',
      accepted: redirect('https://permits.example.org/.well-known/a..b'),
      refused: redirect('https://permits.example.org/a/%2e%2e/b'),
    },
    {
      rule: 'a redirect URI is listed once',
      message: 'Duplicate value',
      accepted: { redirectUris: ['https://a.example.org/', 'https://b.example.org/'] },
      refused: { redirectUris: ['https://a.example.org/', 'https://a.example.org/'] },
    },
    {
      rule: 'a target id is 1 to 50 letters, digits, spaces, hyphens and underscores',
      message: 'must be 1 to 50 letters, digits, spaces, hyphens and underscores',
      accepted: target({ id: 'Form service_1' }),
      refused: target({ id: 'form/service' }),
    },
    {
      rule: 'a target id is listed once',
      message: 'Duplicate value',
      accepted: {
        targets: [
          { id: 'a', upstream: 'x' },
          { id: 'b', upstream: 'x' },
        ],
      },
      refused: {
        targets: [
          { id: 'a', upstream: 'x' },
          { id: 'a', upstream: 'y' },
        ],
      },
    },
    {
      rule: 'a target has an upstream',
      message: 'upstream: Required value',
      accepted: target({ upstream: 'file-service' }),
      refused: { targets: [{ id: 'a' }] },
    },
    {
      rule: 'an upstream is the URN of a service',
      message: 'must be the URN of a service or an API',
      accepted: target({ upstream: 'urn:example:platform:form-service' }),
      refused: target({ upstream: 'https://forms.example.org' }),
    },
    {
      rule: 'an upstream is the URN of an API, not of a resource',
      message: 'must be the URN of a service or an API',
      accepted: target({ upstream: 'urn:example:platform:form-service:v1' }),
      refused: target({ upstream: 'urn:example:platform:form-service:v1:/forms/1' }),
    },
    {
      rule: 'keycloakLogout is true or false',
      message: 'must be of type boolean',
      accepted: { keycloakLogout: true },
      refused: { keycloakLogout: 'true' },
    },
  ])('$rule', async ({ message, accepted, refused }) => {
    expect(await refusal(lab.create('good', accepted))).toBeUndefined();
    expect(await refusal(lab.create('bad', refused))).toMatch(/^422 /);
    expect(await refusal(lab.create('bad', refused))).toContain(message);
  });

  it('a resource whose name is not a valid client id needs the field clientId', async () => {
    const message = 'the name of this resource is not a valid client id';
    expect(await refusal(lab.create('permits.example.org', {}))).toContain(message);
    expect(await refusal(lab.create('a'.repeat(51), {}))).toContain(message);
    expect(await refusal(lab.create('permits.example.org', { clientId: 'permits' }))).toBeUndefined();
    expect(await refusal(lab.create('a'.repeat(50), {}))).toBeUndefined();
  });

  it('a spec is required', async () => {
    const { namespace, objects } = lab;
    const { spec: _spec, ...body } = manifest('none', {});
    const place = { group: 'formgate.dev', version: 'v1alpha1', plural: 'coreclients', namespace };
    expect(await refusal(objects.createNamespacedCustomObject({ ...place, body }))).toContain('spec: Required value');
  });
});

describe('the client id', () => {
  const message = 'the client id cannot change';

  it('cannot be changed, removed or added later', async () => {
    await lab.create('given', { clientId: 'One' });
    await lab.create('named', {});
    expect(await refusal(lab.patch('given', { spec: { clientId: 'Two' } }))).toContain(message);
    expect(await refusal(lab.patch('given', { spec: { clientId: null } }))).toContain(message);
    expect(await refusal(lab.patch('named', { spec: { clientId: 'Two' } }))).toContain(message);
  });

  it('can be added if it equals the name, and all other fields can change', async () => {
    await lab.create('named', {});
    expect(await refusal(lab.patch('named', { spec: { clientId: 'named' } }))).toBeUndefined();
    expect(await refusal(lab.patch('named', { spec: { description: 'new', keycloakLogout: true } }))).toBeUndefined();
  });
});

describe('a created CoreClient', () => {
  it('gets the defaults of missing fields, and loses unknown fields', async () => {
    const { spec } = await lab.create('bare', { surprise: 1 });
    expect(spec).toEqual({ redirectUris: [], targets: [], keycloakLogout: false });
  });

  it('has a status subresource: writes of the resource do not change it, and it does not change the generation', async () => {
    const status = { observedGeneration: 1, conditions: [] };
    await lab.create('a', {});
    expect((await lab.patch('a', { status })).status).toBeUndefined();
    expect((await lab.patch('a', { spec: { description: 'x' } })).metadata.generation).toBe(2);
  });
});

describe('the definition', () => {
  it('has kind, plural and short name of CoreClients, columns for kubectl, and is kept on uninstall', async () => {
    const api = lab.admin.makeApiClient(ApiextensionsV1Api);
    const { spec, metadata } = await api.readCustomResourceDefinition({ name: 'coreclients.formgate.dev' });
    expect(spec).toMatchObject({
      scope: 'Namespaced',
      names: { kind: 'CoreClient', plural: 'coreclients', singular: 'coreclient', shortNames: ['cclient'] },
    });
    expect(spec.versions[0]?.additionalPrinterColumns?.map(({ name }) => name)).toEqual([
      'Client',
      'Accepted',
      'Ready',
      'Reason',
      'Shadows',
      'Resolved',
      'Targets',
      'Revision',
      'Age',
    ]);
    expect(metadata?.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
  });

  it('causes no warnings of the API server', async () => {
    const api = lab.admin.makeApiClient(ApiextensionsV1Api);
    const { status } = await api.readCustomResourceDefinition({ name: 'coreclients.formgate.dev' });
    expect(status?.conditions?.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([]);
  });

  it('describes every field of the spec', () => {
    const undescribed: string[] = [];
    const walk = (schema: Schema, path: string) => {
      if (schema.description === undefined && path !== '') undescribed.push(path);
      for (const [name, member] of Object.entries(schema.properties ?? {})) walk(member, `${path}.${name}`);
      for (const [name, member] of Object.entries(schema.items?.properties ?? {})) walk(member, `${path}[].${name}`);
    };
    const schema = coreClientsDefinition().spec.versions[0]?.schema?.openAPIV3Schema as Schema | undefined;
    walk(schema?.properties?.spec ?? {}, '.spec');
    expect(undescribed).toEqual([]);
  });
});

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}
