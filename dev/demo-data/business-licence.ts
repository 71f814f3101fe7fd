// The demo form definition: an application for a business licence, for applicants with or without an account.
import type { Urns } from '../../src/service/urn.ts';
import dataSchema from './business-licence-data-schema.json' with { type: 'json' };

const control = (scope: string, more: object = {}) => ({ type: 'Control', scope: `#/properties/${scope}`, ...more });
const showWhen = (scope: string, schema: object) => ({
  rule: { effect: 'SHOW', condition: { scope: `#/properties/${scope}`, schema } },
});

const uiSchema = (urns: Urns) => ({
  type: 'Categorization',
  elements: [
    {
      type: 'Category',
      label: 'The business',
      elements: [
        control('businessName'),
        control('structure'),
        control('registrationNumber', showWhen('structure', { enum: ['corporation', 'non-profit'] })),
        control('activity', { options: { multi: true } }),
        control('startDate'),
        control('employees'),
        control('servesFood'),
        control('foodSafetyCertificate', showWhen('servesFood', { const: true })),
      ],
    },
    {
      type: 'Category',
      label: 'Where and who',
      elements: [
        control('address/properties/street', { options: { autocomplete: 'address-line1' } }),
        control('address/properties/city', { options: { autocomplete: 'address-level2' } }),
        control('address/properties/postalCode', { options: { autocomplete: 'postal-code' } }),
        control('address/properties/country', { options: { register: { urn: urns.register('countries') } } }),
        control('contact/properties/name', { options: { autocomplete: 'name' } }),
        control('contact/properties/email'),
        control('contact/properties/phone'),
      ],
    },
    { type: 'Category', label: 'Declaration', elements: [control('declaration')] },
  ],
});

export const businessLicenceId = 'business-licence';

/**
 * Returns the form definition. `publicUrl` is the gateway's address; the links in mails to applicants begin with it.
 */
export function businessLicence(urns: Urns, publicUrl: string): Record<string, unknown> {
  return {
    id: businessLicenceId,
    name: 'Business licence',
    description: 'Apply for a licence to run a business in the municipality.',
    anonymousApply: true,
    applicantRoles: ['applicant'],
    clerkRoles: ['clerk'],
    assessorRoles: ['assessor'],
    oneFormPerApplicant: false,
    // The form's id is in the URL's fragment, which browsers do not send, so access logs never contain the id.
    formDraftUrlTemplate: `${publicUrl}/apply/demo/${businessLicenceId}#form={{id}}`,
    dataSchema,
    uiSchema: uiSchema(urns),
  };
}

/** Valid form data for this definition: `begun` is a first save, `complete` can be submitted. */
export const exampleFormData = {
  begun: { businessName: 'Northern Lights Bakery', structure: 'corporation', servesFood: true },
  complete: {
    businessName: 'Northern Lights Bakery',
    structure: 'corporation',
    registrationNumber: 'CA-2026-01877',
    activity: 'Bread, pastries and coffee, baked and served on the premises.',
    startDate: '2026-10-01',
    employees: 6,
    servesFood: true,
    foodSafetyCertificate: 'FS-30912',
    address: { street: '12 Aurora Avenue', city: 'Whitehorse', postalCode: 'Y1A 2C6', country: 'CA' },
    contact: { name: 'Ana Okafor', email: 'ana@example.org', phone: '+1 867 555 0100' },
    declaration: true,
  },
};
