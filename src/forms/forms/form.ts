// A form and its views. All functions are pure. No view contains a full address, a subscriber or the creator's issuer.
import type { FormStatus } from './catalogue.ts';

export interface Channel {
  channel: 'email' | 'sms';
  address: string;
}

/** The languages of the mails and of the applicant's pages. */
export const languages = ['en', 'fr'] as const;
export type Language = (typeof languages)[number];

export interface Applicant {
  addressAs?: string | undefined;
  channels: Channel[];
  /** The language of mails to the applicant; English if it is missing. */
  language?: Language | undefined;
}

/** Returns a short reference number for people: the last 48 bits of the id, which are random. */
export function referenceOf(formId: string): string {
  return formId
    .toUpperCase()
    .slice(-12)
    .replace(/(.{4})(.{4})(.{4})/, '$1-$2-$3');
}

/** The subject (`id`) and the display name of an account. */
export interface Person {
  id: string;
  name: string;
}

/** A form without its form data. */
export interface Form {
  /** The form's id, a UUID. */
  id: string;
  /** The tenant's URN. */
  tenantId: string;
  definitionId: string;
  status: FormStatus;
  created: Date;
  createdBy: Person;
  /** The issuer of the account `createdBy.id`. */
  issuer: string;
  /** True if an intake application created the form for an applicant without an account. */
  anonymousApplicant: boolean;
  /** True if a clerk entered the form for someone else. */
  forAnother: boolean;
  applicant: Applicant;
  /** The subscriber's id at the notification service. Null until the outbox row `subscribe` is delivered. */
  subscriberId: string | null;
  lastAccessed: Date;
  locked: Date | null;
  submitted: Date | null;
  held: boolean;
  /** Why an administrator holds the form. Null if the form is not held, or if no reason was given. */
  holdReason: string | null;
  /** The administrator who holds the form. Null if the form is not held. */
  heldBy: Person | null;
  /** A number that each change of form data or status increases. A bigint, as text. */
  revision: string;
}

/** The record of a deleted form. It contains nothing about the applicant. */
export type Tombstone = Pick<Form, 'definitionId' | 'anonymousApplicant'>;

/**
 * Returns the channel to which codes are sent: the first email channel or, if there is none, the first channel. Ignores
 * channels whose kind is not in `usable`.
 */
export function codeChannel(
  { channels }: Applicant,
  usable: readonly string[] = ['email', 'sms'],
): Channel | undefined {
  const used = channels.filter(({ channel }) => usable.includes(channel));
  return used.find(({ channel }) => channel === 'email') ?? used[0];
}

/**
 * Returns the channels to which a notice may be sent: the first email and the first SMS channel. The notification
 * service uses only the first channel of each kind.
 */
export function noticeChannels({ channels }: Applicant): Channel[] {
  const kinds = ['email', 'sms'] as const;
  return kinds.flatMap((kind) => channels.find(({ channel }) => channel === kind) ?? []);
}

/** Control characters, line breaks, and characters that change the direction of text (Unicode Annex 9, section 2). */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;
/** Text that mail programs turn into links: a scheme, or a domain with any of the dots that IDNA allows. */
const webAddress = /:\/\/|\bwww[.．。｡]|[\p{L}\p{N}-]{2,}[.．。｡]\p{L}{2,}|[.．。｡]\p{L}{2,}\//iu;

/**
 * Returns the reason why a mail must not greet the applicant with this text. Undefined if the text is allowed. Callers
 * can enter any address, so strangers may receive the text.
 */
export function addressAsProblem(text: string): string | undefined {
  if (text.length > 100) return 'must have at most 100 characters';
  if (unprintable.test(text)) return 'must have no line breaks, control characters or bidirectional overrides';
  return webAddress.test(text) ? 'must not contain a web or mail address' : undefined;
}

/**
 * Returns an applicant in the form in which it is stored. Email addresses are in lower case, because the notification
 * service compares them exactly.
 */
export function normaliseApplicant({ addressAs, channels = [], language }: ApplicantInput): Applicant {
  const kept = channels.map(({ channel, address }) => ({
    channel,
    address: channel === 'email' ? address.toLowerCase() : address.replaceAll(/[\s().-]/g, ''),
  }));
  return { ...(addressAs && { addressAs }), channels: kept, ...(language && { language }) };
}

export interface ApplicantInput {
  addressAs?: string | undefined;
  channels?: Channel[] | undefined;
  language?: Language | undefined;
}

/** Masks an address so that an administrator can recognise it but not read it: `a***@example.org`, `***67`. */
export function maskAddress({ channel, address }: Channel): string {
  if (channel === 'sms') return `***${address.slice(-2)}`;
  const at = address.lastIndexOf('@');
  return `${[...address][0] ?? ''}***${at > 0 ? address.slice(at) : ''}`;
}

/** Returns the view for the response to a creation request. All other views begin with the members of this view. */
export function createdView(
  form: Pick<Form, 'id' | 'definitionId' | 'status' | 'created' | 'createdBy' | 'lastAccessed'>,
) {
  return {
    id: form.id,
    definitionId: form.definitionId,
    status: form.status,
    created: form.created.toISOString(),
    createdBy: { id: form.createdBy.id, name: form.createdBy.name },
    lastAccessed: form.lastAccessed.toISOString(),
  };
}

export interface ViewOptions {
  /** True if the view shows the masked channels and the hold. */
  administrator: boolean;
  dates: { lockOn: Date | null; deleteOn: Date | null } | undefined;
}

/** The view for callers who may read the form. */
export function formView(form: Form, { administrator, dates }: ViewOptions) {
  const { addressAs, channels, language } = form.applicant;
  return {
    ...createdView(form),
    locked: form.locked?.toISOString() ?? null,
    lockOn: dates?.lockOn?.toISOString() ?? null,
    deleteOn: dates?.deleteOn?.toISOString() ?? null,
    submitted: form.submitted?.toISOString() ?? null,
    held: form.held,
    ...(administrator && { hold: form.heldBy && { reason: form.holdReason, by: form.heldBy } }),
    anonymousApplicant: form.anonymousApplicant,
    applicant: {
      ...(addressAs !== undefined && { addressAs }),
      ...(language !== undefined && { language }),
      ...(administrator && {
        channels: channels.map((channel) => ({ channel: channel.channel, address: maskAddress(channel) })),
      }),
    },
  };
}

/** Returns the entity tag of the form data (RFC 9110 section 8.8.3). */
export function entityTag(revision: string): string {
  return `"${revision}"`;
}

/**
 * The Cache-Control of responses with the ETag of form data. It asks proxies not to compress them (RFC 9111 section
 * 5.2.2.6), because a proxy that does so weakens or removes the ETag.
 */
export const untransformed = 'no-store, no-transform';

/**
 * Returns the revisions that an If-Match header allows: undefined for any revision (no header, or `*`), null for an
 * invalid header. Tags of other services match no revision.
 *
 * RFC 9110 section 13.1.1 requires that a weak tag matches nothing, so that no change of the resource is overlooked.
 * Here, `W/"3"` nevertheless matches revision 3. The form service sends only strong tags, and every save has its own
 * number. Some proxies, such as nginx, ignore `no-transform` and make the tag weak when they compress the response.
 * Otherwise, no save behind such a proxy could succeed.
 */
export function parseIfMatch(header: string | undefined): string[] | undefined | null {
  const text = header?.trim();
  if (text === undefined || text === '*') return undefined;
  if (!/^(?:W\/)?"[\x21\x23-\x7e]*"(?:\s*,\s*(?:W\/)?"[\x21\x23-\x7e]*")*$/.test(text)) return null;
  // A tag with leading zeros is another tag, although Postgres would read it as the same number.
  return [...text.matchAll(/"([1-9]\d{0,17})"/g)].map(([, revision = '']) => revision);
}
