// Checks the form service's registrations against the rules of the platform's services.
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationTexts } from '../../test/support/duration-texts.ts';
import { parseDuration } from '../service/operations/duration.ts';
import { parseDefinition } from './definitions/definition.ts';
import { definitionSchema, registered } from './registration.ts';

const ajv = new Ajv({ allErrors: true, strict: true, allowUnionTypes: true, strictRequired: false });
addFormats.default(ajv);

const permit = { id: 'permit', name: 'Permit', anonymousApply: true, applicantRoles: [], assessorRoles: ['assessor'] };

describe('the schema of form definitions', () => {
  const validate = ajv.compile(definitionSchema);

  it.each([
    ['the required fields alone', { id: 'permit', name: 'Permit' }],
    ['nobody who may apply', permit],
    [
      'every field',
      {
        ...permit,
        description: 'A permit',
        clerkRoles: ['clerk'],
        oneFormPerApplicant: false,
        dataSchema: { type: 'object' },
        uiSchema: { type: 'VerticalLayout' },
        formDraftUrlTemplate: 'https://forms.example.org/{{id}}',
        includeDataInSubmission: true,
        retention: { warnBefore: 'P3D', lockAfter: 'P2W', deleteAfter: 'PT36H' },
      },
    ],
    ['fields of the older platform', { ...permit, ministry: 'Trade', dispositionStates: [{ id: 'a', name: 'A' }] }],
  ])('accepts %s', (_, definition) => {
    expect(validate(definition), JSON.stringify(validate.errors)).toBe(true);
  });

  it.each([
    ['no name', { ...permit, name: undefined }],
    ['an id that the configuration service refuses', { ...permit, id: 'a:b' }],
    ['roles that are no list', { ...permit, applicantRoles: 'assessor' }],
    ['a retention in months', { ...permit, retention: { lockAfter: 'P1M' } }],
    ['an empty retention', { ...permit, retention: { lockAfter: 'P' } }],
    ['a link that is no web address', { ...permit, formDraftUrlTemplate: 'javascript:alert(1)' }],
  ])('rejects %s', (_, definition) => {
    expect(validate(JSON.parse(JSON.stringify(definition)))).toBe(false);
  });

  it('sets no defaults, because the configuration service would write them into a tenant’s configuration', () => {
    expect(JSON.stringify(registered.definitions)).not.toContain('"default"');
  });

  it('accepts the durations that the form service and its settings accept, and no others', () => {
    const isRead = (definition: object) => {
      try {
        return parseDefinition('permit', definition).id === 'permit';
      } catch {
        return false;
      }
    };
    fc.assert(
      fc.property(durationTexts, (lockAfter) => {
        const definition = { ...permit, retention: { lockAfter } };
        const isDuration = parseDuration(lockAfter) !== undefined;
        expect([validate(definition), isRead(definition)]).toEqual([isDuration, isDuration]);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('the registration', () => {
  it('defines both locations of form definitions, each with a schema that compiles', () => {
    expect(Object.keys(registered.definitions ?? {})).toEqual(['platform:form-service', 'form-service']);
    for (const { configurationSchema } of Object.values(registered.definitions ?? {})) ajv.compile(configurationSchema);
  });

  it('adds the role form-admin, which tenant administrators have, and intake-application, which has no members by default', () => {
    expect(registered.roles?.map(({ role, inTenantAdmin }) => [role, inTenantAdmin])).toEqual([
      ['form-admin', true],
      ['intake-application', false],
    ]);
  });

  it('contains only JSON values and no null, which the configuration service cannot merge', () => {
    expect(JSON.parse(JSON.stringify(registered))).toEqual(registered);
    const values = (value: unknown): unknown[] =>
      typeof value === 'object' && value !== null ? Object.values(value).flatMap(values) : [value];
    expect(values(registered)).not.toContain(null);
  });
});
