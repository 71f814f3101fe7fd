// The request and response schemas of the check of form definitions.
import { z } from 'zod';
import { isObject } from '../../service/json-value.ts';

export const checkBody = z.custom<Record<string, unknown>>(isObject, 'must be an object').meta({
  type: 'object',
  description: 'A form definition, as it is or will be configured',
  examples: [{ id: 'permit', name: 'Permit', anonymousApply: true, dataSchema: { type: 'object', required: 'name' } }],
});

export const tenantQuery = z.object({
  tenantId: z.string().optional().meta({ description: 'URN of the tenant; required of core users' }),
});

export const definitionParams = z.object({ definitionId: z.string().max(50) });

export const definitionResponse = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().optional(),
    anonymousApply: z.boolean(),
    dataSchema: z.unknown().meta({ description: 'A JSON Schema' }),
    uiSchema: z.unknown().meta({ description: 'A UI schema of JSON Forms; null without one' }),
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
            '`error`: no draft can be created. `warning`: drafts can be created, but applicants would meet a fault',
        }),
      }),
    ),
    truncated: z.boolean().meta({ description: 'Whether there are more than the listed hundred' }),
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
