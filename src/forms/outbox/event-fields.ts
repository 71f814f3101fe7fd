// The members of event payloads. Each has a JSON Schema (draft-07) and a function that renders it from an outbox row.
// All functions are pure. No member contains an address, a channel, a code or a subscriber.
import type { Urns } from '../../service/urn.ts';
import { type FormStatus, formStatuses } from '../forms/catalogue.ts';
import { type Language, languages, referenceOf } from '../forms/form.ts';
import type { LinkPurpose, NoticeLinks } from '../notices/links.ts';
import type { Actor, OutboxRow } from './outbox.ts';

export interface JsonSchema {
  [keyword: string]: unknown;
}

/** The part of a form's definition that events use. */
export interface EventDefinition {
  id: string;
  name: string;
  description?: string | null | undefined;
  /** An http(s) URL with the placeholder `{{id}}` or `{id}` for the form's id. */
  formDraftUrlTemplate?: string | null | undefined;
  includeDataInSubmission?: boolean | null | undefined;
}

export interface PayloadSource {
  row: OutboxRow;
  /** The form's definition. Undefined if the definition is no longer configured. */
  definition: EventDefinition | undefined;
  /** The form data if the event contains it and the definition asks for it; otherwise null. */
  data: Record<string, unknown> | null;
  urns: Urns;
  /** Creates the links of warning mails. Undefined if mails must not contain links to the applicant's pages. */
  links?: NoticeLinks | undefined;
}

/** A member of an event's payload: its schema, and the function that renders its value. */
export interface Field {
  schema: JsonSchema;
  /** True if the events of the previous version do not have this member. See {@link objectSchema}. */
  isNew?: true;
  render(source: PayloadSource): unknown;
}

const optionalDateTime = { type: ['string', 'null'], format: 'date-time' };
const optionalText = { type: ['string', 'null'] };
const optionalObject = { type: ['object', 'null'] };

/**
 * Returns the schema of an object that requires these properties and allows further ones. Properties that the events of
 * the previous version do not have are not required for one version. Otherwise, the event service would refuse the
 * events of older pods during a rollout and after a rollback.
 */
export function objectSchema(properties: Record<string, JsonSchema>, newOnes: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties).filter((name) => !newOnes.includes(name)) };
}

const actorSchema = objectSchema({ id: { type: 'string' }, name: { type: 'string' } });
const definitionSchema = {
  ...objectSchema({ id: { type: 'string' }, name: { type: 'string' }, description: optionalText }),
  ...optionalObject,
};
const link = objectSchema({ href: { type: 'string' } });

const formSchema = objectSchema(
  {
    urn: { type: 'string' },
    id: { type: 'string', format: 'uuid' },
    reference: { type: 'string' },
    definition: definitionSchema,
    formDraftUrl: optionalText,
    status: { type: 'string', enum: formStatuses },
    created: optionalDateTime,
    createdBy: { ...actorSchema, ...optionalObject },
    locked: optionalDateTime,
    submitted: optionalDateTime,
    lastAccessed: optionalDateTime,
    applicant: { ...objectSchema({ addressAs: { type: 'string' } }), ...optionalObject },
    dryRun: { type: 'boolean' },
    _links: objectSchema({ self: link, data: link, collection: link }),
  },
  ['reference'],
);

/** The person who made the change. Rows that the expiry writes have no actor; their events name `form-service-job`. */
export const actor: Field = {
  schema: actorSchema,
  render({ row }) {
    const { id, name } = row.facts.actor ?? { id: 'form-service-job', name: 'form-service-job' };
    return { id, name } satisfies Actor;
  },
};

/** A member with a time from the facts of the outbox row; null if the row does not have this fact. */
export function factTime(name: 'lockOn' | 'deleteOn'): Field {
  return { schema: optionalDateTime, render: ({ row }) => row.facts[name] ?? null };
}

export const formId: Field = { schema: { type: 'string', format: 'uuid' }, render: ({ row }) => row.formId };

export const formUrn: Field = { schema: { type: 'string' }, render: ({ row, urns }) => urns.form(row.formId) };

export const definition: Field = {
  schema: definitionSchema,
  render: ({ definition: known }) => renderDefinition(known),
};

/** The submitted form data. Null if the event must not contain it (see `wantsData`). */
export const formData: Field = { schema: optionalObject, render: ({ data }) => data };

/** Returns the language of the applicant as it is stored with the form. */
function languageOf({ form, facts }: OutboxRow): Language {
  return form?.applicant.language ?? facts.language ?? 'en';
}

export const language: Field = {
  schema: { type: 'string', enum: languages },
  isNew: true,
  render: ({ row }) => languageOf(row),
};

/** True if the applicant's language is French. Templates need this flag, because they cannot compare texts. */
export const inFrench: Field = {
  schema: { type: 'boolean' },
  isNew: true,
  render: ({ row }) => languageOf(row) === 'fr',
};

/** True if the deleted form was not submitted. */
export const wasDraft: Field = {
  schema: { type: 'boolean' },
  isNew: true,
  render: ({ row }) => row.facts.wasDraft === true,
};

/**
 * A link to a page for the applicant. The page changes nothing until its button is pressed. A deletion also requires a
 * code.
 */
export function noticeLink(purpose: LinkPurpose): Field {
  return {
    schema: optionalText,
    isNew: true,
    render({ row, links }) {
      const { deleteOn } = row.facts;
      if (!links || deleteOn === undefined) return null;
      const facts = { tenantId: row.tenantId, language: languageOf(row), expires: new Date(deleteOn) };
      return links.urlOf(purpose, row.formId, facts);
    },
  };
}

/** Constant members that consumers of the older platform expect. */
export const noSubmission: Field = { schema: optionalObject, render: () => null };
export const noDryRun: Field = { schema: { type: 'boolean' }, render: () => false };

/**
 * The URNs of the files that the form names, and of those that were uploaded for it. Other values in the form's `files`
 * member are form data, so they are omitted.
 */
export const files: Field = {
  schema: { type: 'array', items: { type: 'string' } },
  render: ({ row: { facts }, urns }) =>
    (facts.files ?? []).filter((urn) => urn.startsWith(`${urns.service('file-service')}:v1:/files/`)),
};

/**
 * The form as it was after the event. `effect` says whether the event created or submitted the form. Status, lock time
 * and submission time come from the event, because the form may have changed since. The other members come from the
 * form's row; they are null if the form was deleted.
 */
export function formAfter(status: FormStatus, effect?: 'creates' | 'submits'): Field {
  return { schema: formSchema, render: (source) => renderForm(source, status, effect) };
}

function renderForm({ row, definition: known, urns }: PayloadSource, status: FormStatus, effect?: string) {
  const { form, created: at } = row;
  const urn = urns.form(row.formId);
  return {
    urn,
    id: row.formId,
    reference: referenceOf(row.formId),
    definition: renderDefinition(known),
    formDraftUrl: formDraftUrl(known, row.formId),
    status,
    created: (effect === 'creates' ? at : form?.created)?.toISOString() ?? null,
    createdBy: form ? { id: form.createdBy.id, name: form.createdBy.name } : null,
    locked: status === 'Locked' ? at.toISOString() : null,
    submitted: effect === 'submits' ? at.toISOString() : submittedBefore(row),
    lastAccessed: form ? new Date(Math.min(form.lastAccessed.getTime(), at.getTime())).toISOString() : null,
    applicant: form?.applicant.addressAs ? { addressAs: form.applicant.addressAs } : null,
    dryRun: false,
    _links: {
      self: { href: urn },
      data: { href: `${urn}/data` },
      collection: { href: urn.slice(0, urn.lastIndexOf('/')) },
    },
  };
}

function submittedBefore({ created, form }: OutboxRow): string | null {
  const submitted = form?.submitted;
  return submitted && submitted <= created ? submitted.toISOString() : null;
}

function renderDefinition(definition: EventDefinition | undefined) {
  return definition
    ? {
        id: definition.id,
        name: definition.name,
        description: definition.description ?? null,
      }
    : null;
}

/** Returns the link to a draft. Null if there is no template, or if it does not result in an http(s) URL. */
export function formDraftUrl(definition: EventDefinition | undefined, formId: string): string | null {
  const template = definition?.formDraftUrlTemplate;
  if (!template) return null;
  const url = template.replace(/\{\{\{?\s*id\s*\}?\}\}|\{id\}/g, encodeURIComponent(formId));
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : null;
}
