// The request and response schemas of the routes that check, list and read form definitions.
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { definitionIdPattern } from './definition.ts';

export const checkBody = anyObject.meta({
  description: 'A form definition, as it is or will be configured',
  examples: [{ id: 'permit', name: 'Permit', anonymousApply: true, dataSchema: { type: 'object', required: 'name' } }],
});

export const tenantQuery = z.object({
  tenantId: z.string().optional().meta({ description: 'URN of the tenant; required of core users' }),
});

export const definitionParams = z.object({
  definitionId: z
    .string()
    .regex(definitionIdPattern, 'must be 1 to 50 letters, digits, spaces, hyphens and underscores')
    .meta({ examples: ['permit'] }),
});

export const definitionList = z
  .strictObject({
    results: z.array(
      z.strictObject({
        id: z.string(),
        name: z.string().meta({ description: 'At most 200 characters of it' }),
        source: z.enum(['collection', 'document']).meta({
          description:
            'Where it is configured: `collection` is `platform:form-service`, `document` is `form-service:<id>`',
        }),
        anonymousApply: z.boolean(),
      }),
    ),
    truncated: z.boolean().meta({ description: 'Whether there are more than the listed thousand' }),
  })
  .meta({ id: 'DefinitionList' });

/**
 * The response to callers who manage forms also contains the roles that the definition names, and the fields that the
 * form service does not use.
 */
export const definitionResponse = z
  .looseObject({
    id: z.string(),
    name: z.string(),
    language: z.string().optional().meta({ description: 'The language of the texts, if the definition says it' }),
    anonymousApply: z.boolean(),
    applicantRoles: z.array(z.string()).optional(),
    assessorRoles: z.array(z.string()).optional(),
    clerkRoles: z.array(z.string()).optional(),
    oneFormPerApplicant: z.boolean().optional(),
    dataSchema: z.unknown().meta({ description: 'A JSON Schema' }),
    uiSchema: z.unknown().optional().meta({ description: 'A UI schema of JSON Forms' }),
  })
  .meta({ id: 'FormDefinition' });

export const checkResponse = z
  .object({
    problems: z.array(
      z.object({
        pointer: z.string().meta({ description: 'JSON pointer (RFC 6901) into the definition' }),
        detail: z.string(),
        severity: z.enum(['error', 'warning']).meta({
          description:
            '`error`: no draft can be created. `warning`: drafts can be created, but applicants would run into an error',
        }),
      }),
    ),
    truncated: z
      .boolean()
      .meta({ description: 'Whether there are more: at most a hundred are listed, and fewer if they are long' }),
  })
  .meta({
    id: 'DefinitionProblems',
    examples: [
      {
        problems: [{ pointer: '/dataSchema/required', detail: 'must be array', severity: 'error' }],
        truncated: false,
      },
    ],
  });
