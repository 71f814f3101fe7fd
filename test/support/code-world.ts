// A database of forms with the store of their codes, a clock that only the test moves, and an in-memory notification
// service that sends and checks codes. The test decides the outcome of each call to this service.
import { randomUUID } from 'node:crypto';
import { createCodeHashes } from '../../src/forms/codes/code.ts';
import { type CodeAttempt, createCodeStore } from '../../src/forms/codes/store.ts';
import { createVerification, type VerificationOptions } from '../../src/forms/codes/verification.ts';
import { formMigrations } from '../../src/forms/expiry/migrations.ts';
import type { Applicant, Form } from '../../src/forms/forms/form.ts';
import type { Notifications } from '../../src/platform/notifications.ts';
import { createTestDatabase } from './postgres.ts';
import { recordRequesters } from './requesters.ts';

export const tenantId = 'urn:example:platform:tenant-service:v2:/tenants/65f0c2a9e4b0a1d2c3f4a5b6';
export const kiosk = { issuer: 'https://access.example.org/auth/realms/demo', subject: 'kiosk' };
export const otherKiosk = { ...kiosk, subject: 'other-kiosk' };

type Sent = Parameters<Notifications['sendCode']>[0];
type Checked = Parameters<Notifications['checkCode']>[0];

/** The in-memory notification service. The correct code of every form is RIGHT. */
export interface CodeService {
  sent: Sent[];
  checked: Checked[];
  channels: readonly string[] | undefined;
  /** Called instead of sending a code. */
  onSend: (request: Sent) => Promise<void>;
  /** Decides whether a code is right. */
  onCheck: (request: Checked) => Promise<boolean>;
}

export type CodeWorld = Awaited<ReturnType<typeof startCodeWorld>>;

export async function startCodeWorld() {
  const database = await createTestDatabase(formMigrations.directory);
  let moment = Date.parse('2026-03-20T10:00:00.123Z');
  const now = () => new Date(moment);
  const { pool } = database;
  const recorded = recordRequesters(pool);
  const store = createCodeStore(recorded.pool);
  const hashes = createCodeHashes('a key of tests');
  const keysOf = ({ id, applicant: { channels } }: Form) => ({
    ...{ tenantId, formId: id },
    addressHash: hashes.address(tenantId, channels[0] ?? { channel: 'email', address: '' }),
  });

  /** Adds a form. By default, its applicant has a unique email address. */
  async function addForm(changes: Partial<Pick<Form, 'applicant' | 'subscriberId' | 'tenantId'>> = {}): Promise<Form> {
    const id = randomUUID();
    const form: Form = {
      ...{ id, tenantId, definitionId: 'permit', status: 'Draft', created: now(), issuer: 'core' },
      ...{
        createdBy: { id: 'kiosk', name: 'Kiosk' },
        anonymousApplicant: true,
        forAnother: false,
        lastAccessed: now(),
        locked: null,
      },
      ...{ applicant: emailTo(`${id}@example.org`), subscriberId: `subscriber of ${id}`, submitted: null, held: false },
      ...{ holdReason: null, heldBy: null, revision: '1' },
      ...changes,
    };
    await pool.query(
      `INSERT INTO forms (id, tenant_id, definition_id, status, created, created_by, created_by_issuer,
        anonymous_applicant, one_per_applicant, applicant, last_accessed, subscriber_id)
      VALUES ($1, $2, 'permit', 'Draft', $3, '{"id":"kiosk","name":"Kiosk"}', 'core', true, false, $4, $3, $5)`,
      [id, form.tenantId, form.created, form.applicant, form.subscriberId],
    );
    return form;
  }

  return {
    ...{ pool, store, hashes, now, requesters: recorded.requesters, addForm },
    advance(milliseconds: number) {
      moment += milliseconds;
    },
    /**
     * Creates a notification service, and a code verification that uses it. `counted` lists the outcomes that the
     * verification reports to its metric.
     */
    createVerification(changes: Partial<VerificationOptions> = {}) {
      const service: CodeService = {
        ...{ sent: [], checked: [], channels: undefined },
        onSend: async () => undefined,
        onCheck: async ({ code }) => code === 'RIGHT',
      };
      const counted: string[] = [];
      const verification = createVerification({
        ...{ store, hashes, clock: now, channels: ['email', 'sms'], codeLifetime: 600_000 },
        notifications: {
          codeChannels: () => service.channels,
          sendCode(request) {
            service.sent.push(request);
            return service.onSend(request);
          },
          checkCode(request) {
            service.checked.push(request);
            return service.onCheck(request);
          },
        },
        subscribeNow: async (formId) => `new subscriber of ${formId}`,
        count: (outcome) => void counted.push(outcome),
        ...changes,
      });
      return { ...verification, service, counted };
    },
    /** Returns the keys by which the store counts a form's sent codes and attempts to enter a code. */
    keysOf,
    /** Returns an attempt to enter `code` at the current time. */
    attemptOf: (form: Form, code = 'A', account = kiosk): CodeAttempt => ({
      ...{ ...keysOf(form), ...account },
      ...{ codeHash: hashes.code(form.id, code), now: now() },
    }),
    close: database.drop,
  };
}

export const emailTo = (address: string): Applicant => ({ channels: [{ channel: 'email', address }] });

/** Returns the Problem with which `work` failed; undefined if it succeeded. */
export function problemOf(work: Promise<unknown>) {
  return work.then(
    () => undefined,
    (error: unknown) => error as { slug?: string; kind?: string; headers?: Record<string, string> },
  );
}
