// Parses a form definition as tenants configure it, and adds defaults. All functions are pure. Unknown fields are
// ignored. If a field is invalid, the definition cannot be used, and the problem points to the field.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { anyObject } from '../../service/http/any-object.ts';
import { issueMessage } from '../../service/http/issue-message.ts';
import { fieldErrors, Problem, type ProblemOptions } from '../../service/http/problem.ts';
import { intakeSchema } from './intake.ts';
import { hasOneOf } from './named-roles.ts';

/** Ids may have the same characters and length as the names of configurations in the configuration service. */
export const definitionIdPattern = /^[a-zA-Z0-9-_ ]{1,50}$/;

/**
 * Maximum number of invalid roles that are reported. Zod would create an issue of several hundred bytes for each item
 * of a list, and a list may have a million items.
 */
const reportedRoles = 100;
const roles = z
  .array(z.unknown())
  .nullish()
  .transform((list, context): string[] => {
    let wrong = 0;
    for (const [index, role] of list?.entries() ?? []) {
      if (typeof role === 'string') continue;
      context.addIssue({ code: 'custom', path: [index], message: 'must be a string' });
      if (++wrong === reportedRoles) break;
    }
    return (list ?? []) as string[];
  });
// A duration must not contain months or years, because their length depends on the calendar.
const duration = z
  .string()
  .regex(
    /^P(?=.)(?:\d+W)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?$/,
    'must be a duration such as P15D',
  );
const flag = (ifMissing: boolean) =>
  z
    .boolean()
    .nullish()
    .transform((value) => value ?? ifMissing);
const jsonSchema = z.union([anyObject, z.boolean()], 'must be an object or a boolean');

// Not a loose object: zod would copy all other fields, which takes seconds if there are hundreds of thousands.
const definitionSchema = z.object({
  name: z.string().optional(),
  description: z.string().nullish(),
  /** True if intake applications may create forms for applicants without an account. */
  anonymousApply: flag(false),
  applicantRoles: roles,
  assessorRoles: roles,
  clerkRoles: roles,
  oneFormPerApplicant: flag(true),
  dataSchema: jsonSchema.nullish().transform((schema) => schema ?? {}),
  uiSchema: anyObject.nullish(),
  formDraftUrlTemplate: z.string().nullish(),
  includeDataInSubmission: z.boolean().nullish(),
  /** The windows in which forms can be created and submitted. Without windows, this is possible at any time. */
  intake: intakeSchema,
  /** A field of the older platform, about which the check of a definition warns. */
  scheduledIntakes: z.unknown().optional(),
  retention: z
    .object({ warnBefore: duration.optional(), lockAfter: duration.optional(), deleteAfter: duration.optional() })
    .nullish(),
});

/** A definition with its defaults. */
export interface FormDefinition extends z.output<typeof definitionSchema> {
  id: string;
  name: string;
  /**
   * Identifies the data schema by a hash of its content. The revision number does not identify it, because a revision
   * can be edited in place.
   */
  schemaKey: string;
  /** The data schema as JSON text. */
  schemaText: string;
  /** The definition as configured, with its unknown fields. */
  configured: object;
}

/**
 * Parses the definition and adds its id, schema and defaults. Throws Problem `definition-invalid` with a pointer to
 * each invalid field.
 */
export function parseDefinition(id: string, configured: unknown): FormDefinition {
  const parsed = definitionSchema.safeParse(configured, { error: issueMessage });
  if (!parsed.success) {
    const errors = fieldErrors(parsed.error);
    throw unusable(id, 'Its configuration is not valid.', { errors, cause: parsed.error });
  }
  const { data } = parsed;
  const schemaText = JSON.stringify(data.dataSchema);
  const schemaKey = createHash('sha256').update(schemaText).digest('base64url');
  return { ...data, id, name: data.name ?? id, schemaKey, schemaText, configured: configured as object };
}

/** Returns Problem `definition-invalid`. The pointers in `errors` refer to the definition, not to the request. */
export function unusable(id: string, reason: string, options: Pick<ProblemOptions, 'errors' | 'cause'> = {}): Problem {
  return new Problem('definition-invalid', `The form definition “${id}” cannot be used. ${reason}`, options);
}

/**
 * True for callers with the role form-admin, for callers with a role that the definition names, and for intake
 * applications if the definition allows anonymous applicants. The role form-admin does not permit an intake application
 * to read other definitions, because it passes them on to people without an account.
 */
export function mayReadDefinition(roles: ReadonlySet<string>, definition: FormDefinition): boolean {
  const { applicantRoles, clerkRoles, assessorRoles, anonymousApply } = definition;
  return (
    (roles.has('intake-application') ? anonymousApply : roles.has('form-admin')) ||
    [applicantRoles, clerkRoles, assessorRoles].some((named) => hasOneOf(roles, named))
  );
}
