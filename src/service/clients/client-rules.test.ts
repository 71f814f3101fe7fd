// Tests the clients that Formgate maintains, the entries of client documents, and the rules for URLs and upstreams.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig } from '../operations/config.ts';
import { withRules } from '../operations/settings-rules.ts';
import { createUrns } from '../urn.ts';
import { clientEntries } from './client-entries.ts';
import { clientIdSchema, clientsName, clientsNamespace, maintainedClients, upstreamUrn } from './client-rules.ts';
import { clientUrlRules } from './client-url-rules.ts';

const urns = createUrns('urn:example');
const upstream = (id: string) => ({ id, upstream: `urn:example:platform:${id}` });

it('the clients of a tenant are in the document token-handler of the namespace platform', () => {
  expect([clientsNamespace, clientsName]).toEqual(['platform', 'token-handler']);
});

describe('the id of a client', () => {
  it.each(['a', '9'.repeat(50), 'Permits Web_2-b'])('may be %j', (id) => {
    expect(clientIdSchema.safeParse(id).success).toBe(true);
  });

  it.each(['', '9'.repeat(51), 'a/b', '/a', 'a/', 'ä', 'a.b', 'a\n'])('cannot be %j', (id) => {
    expect(clientIdSchema.safeParse(id).success).toBe(false);
  });
});

describe('a client that Formgate maintains', () => {
  it('does not exist without the URL of its application', () => {
    expect(maintainedClients({}, urns)).toEqual([]);
    expect(maintainedClients({ BUILDER_APP_URL: undefined, CONSOLE_URL: undefined }, urns)).toEqual([]);
  });

  it('of the builder may call the form service and the file service, and returns to the builder only', () => {
    expect(maintainedClients({ BUILDER_APP_URL: 'https://builder.example.org' }, urns)).toEqual([
      {
        id: 'builder-preview',
        name: expect.stringContaining('Builder'),
        description: expect.stringContaining('builder'),
        redirectUris: ['https://builder.example.org/token-handler/clients/builder-preview/callback'],
        targets: [upstream('form-service'), upstream('file-service')],
        keycloakLogout: false,
      },
    ]);
  });

  it('of the console may call the services that administrators work with, and returns to the console only', () => {
    expect(maintainedClients({ CONSOLE_URL: 'https://console.example.org' }, urns)).toEqual([
      {
        id: 'formgate-console',
        name: expect.stringContaining('console'),
        description: expect.stringContaining('administrators'),
        redirectUris: ['https://console.example.org/token-handler/clients/formgate-console/callback'],
        targets: [upstream('form-service'), upstream('configuration-service'), upstream('token-handler')],
        keycloakLogout: false,
      },
    ]);
  });

  it('exists for each application that has a URL', () => {
    const urls = { BUILDER_APP_URL: 'https://builder.example.org', CONSOLE_URL: 'https://console.example.org' };
    expect(maintainedClients(urls, urns).map(({ id }) => id)).toEqual(['builder-preview', 'formgate-console']);
  });
});

describe('the upstream of a target', () => {
  const longest = 'a'.repeat(50);

  it.each([
    ['form-service', 'urn:example:platform:form-service'],
    ['A', 'urn:example:platform:A'],
    [longest, `urn:example:platform:${longest}`],
    ['urn:example:platform:form-service', 'urn:example:platform:form-service'],
    ['urn:example:blue-river:permits:v2', 'urn:example:blue-river:permits:v2'],
    [`urn:example:${longest}:${longest}:${longest}`, `urn:example:${longest}:${longest}:${longest}`],
  ])('may be %s', (text, urn) => {
    expect(upstreamUrn(text, 'urn:example')).toBe(urn);
  });

  it.each([
    '',
    'form_service',
    'form service',
    '/form-service',
    'form-service/',
    'form-service\n',
    `${longest}a`,
    'urn:example',
    'urn:example:',
    'urn:example:platform',
    'urn:example:platform:',
    'urn:example::form-service',
    'urn:example:platform:form-service:',
    'urn:example:platform:form-service:v1:x',
    'urn:example:platform:form-service:v1:/forms',
    `urn:example:platform:${longest}a`,
    `urn:example:${longest}a:form-service`,
    `urn:example:platform:form-service:${longest}a`,
    'urn:example/:platform:form-service',
    'urn:other:platform:form-service',
    'urn:exampla:platform:form-service',
    'x:urn:example:platform:form-service',
  ])('cannot be %j', (text) => {
    expect(upstreamUrn(text, 'urn:example')).toBeUndefined();
  });
});

describe('the entries of a document of clients', () => {
  it('are those of the property clients, and those at the top level that it does not contain', () => {
    const document = { web: 'top', other: 'beside', clients: { web: 'grouped', app: null } };
    expect(clientEntries(document)).toEqual(
      new Map<string, unknown>([
        ['web', 'grouped'],
        ['other', 'beside'],
        ['app', null],
      ]),
    );
  });

  it('do not include the property clients itself, whatever it is', () => {
    for (const clients of [{}, null, 'x', ['a'], 7])
      expect(clientEntries({ clients, web: 1 })).toEqual(new Map([['web', 1]]));
  });

  it.each([undefined, null, 'text', ['a'], 7])('are an empty list for %j', (document) => {
    expect(clientEntries(document)).toEqual(new Map());
  });
});

describe('the URL of an application', () => {
  const schema = withRules(
    z.object({
      BUILDER_APP_URL: z.string().optional(),
      CONSOLE_URL: z.string().optional(),
      ALLOW_INSECURE_REDIRECT_URIS: z.stringbool().default(false),
    }),
    ...clientUrlRules,
  );
  function problemsOf(settings: Record<string, string>): string[] {
    try {
      parseConfig(schema, settings);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map(({ name }) => name);
    }
  }

  it('may be left out, or be https', () => {
    expect(problemsOf({})).toEqual([]);
    expect(problemsOf({ BUILDER_APP_URL: 'https://a.example', CONSOLE_URL: 'https://b.example' })).toEqual([]);
  });

  it.each(['BUILDER_APP_URL', 'CONSOLE_URL'])(
    '(%s) may be http on this machine only, unless that is allowed',
    (name) => {
      expect(problemsOf({ [name]: 'http://localhost:4200' })).toEqual([]);
      expect(problemsOf({ [name]: 'http://a.example' })).toEqual([name]);
      expect(problemsOf({ [name]: 'http://a.example', ALLOW_INSECURE_REDIRECT_URIS: 'true' })).toEqual([]);
    },
  );

  it('cannot contain a wildcard', () => {
    expect(problemsOf({ CONSOLE_URL: 'https://b.example/*', ALLOW_INSECURE_REDIRECT_URIS: 'true' })).toEqual([
      'CONSOLE_URL',
    ]);
  });

  it('is reported for each application', () => {
    expect(problemsOf({ BUILDER_APP_URL: 'http://a.example', CONSOLE_URL: 'http://b.example' })).toEqual([
      'BUILDER_APP_URL',
      'CONSOLE_URL',
    ]);
  });

  it('is reported with both settings that the operator can change', () => {
    expect(clientUrlRules.map(({ names }) => names)).toEqual([
      ['BUILDER_APP_URL', 'ALLOW_INSECURE_REDIRECT_URIS'],
      ['CONSOLE_URL', 'ALLOW_INSECURE_REDIRECT_URIS'],
    ]);
  });
});
