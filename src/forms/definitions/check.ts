// Checks a form definition before applicants use it: its fields, its schemas, and the roles and registers that it
// names.
import type { Configuration } from '../../platform/configuration.ts';
import type { Revision } from '../../platform/configuration-responses.ts';
import { PlatformError } from '../../platform/platform-error.ts';
import { type FieldError, Problem } from '../../service/http/problem.ts';
import { withinTotal } from '../../service/time-limit.ts';
import type { Urns } from '../../service/urn.ts';
import { definitionIn, registerNamespace } from '../registers/register.ts';
import { contradictionsOf, idProblems } from './contradictions.ts';
import { type FormDefinition, parseDefinition } from './definition.ts';
import { roleProblems } from './role-names.ts';
import type { SchemaValidator } from './schema-validator.ts';
import type { NamedRegister } from './ui-schema.ts';

export interface DefinitionProblem extends FieldError {
  /** `error`: drafts cannot be created. `warning`: drafts can be created, but applicants get an error later. */
  severity: 'error' | 'warning';
}

export interface CheckResult {
  problems: DefinitionProblem[];
  /** True if `problems` lacks some: it has at most a hundred, and fewer if they are long. */
  truncated: boolean;
}

export type DefinitionCheck = ReturnType<typeof createDefinitionCheck>;

export interface CheckOptions {
  validator: Pick<SchemaValidator, 'inspect'>;
  configuration: Pick<Configuration, 'activeOrLatest' | 'latest' | 'read'>;
  urns: Urns;
  /** Milliseconds after which a call of a platform client fails (PLATFORM_TIMEOUT). */
  callTimeout: number;
}

interface Context {
  tenantId: string;
  /** Waits for a read, and throws PlatformError `timeout` if the reads of the check together take too long. */
  wait<T>(read: Promise<T>): Promise<T>;
}

const listed = 100;
/**
 * The maximum time for all reads of a check, in calls of the longest duration. A check reads the roles of services, the
 * definitions of registers, and then the entries of each register.
 */
const longestReads = 3;

export function createDefinitionCheck({ validator, configuration, urns, callTimeout }: CheckOptions) {
  /**
   * Reports a role or register as missing only if the configuration service confirms that it does not exist. Throws if
   * the configuration service fails.
   */
  async function namedProblems(definition: FormDefinition, registers: NamedRegister[], context: Context) {
    const { tenantId, wait } = context;
    const owners = [{ core: true } as const, { tenantId }];
    const documents = owners.map((owner) => configuration.latest('platform', 'tenant-service', owner));
    const registrations = (await wait(Promise.all(documents))).map((revision) => revision?.configuration);
    const isOpen = definition.anonymousApply;
    return [
      // One more problem than is listed shows that the list is truncated.
      ...roleProblems(definition, urns.prefix, registrations, listed + 1),
      ...(await registerProblems(registers, isOpen, context)),
    ];
  }

  async function registerProblems(registers: NamedRegister[], isOpen: boolean, context: Context) {
    if (registers.length === 0) return [];
    const { tenantId, wait } = context;
    const { latest } = await wait(configuration.read('platform', 'configuration-service', { tenantId }));
    const found = new Map<string, string | undefined>();
    // Registers are read one after another. A check is rare, and must not take the configuration service's capacity
    // from other requests.
    for (const { urn } of registers)
      if (!found.has(urn)) found.set(urn, await registerProblem(urn, latest?.configuration, isOpen, context));
    return registers.flatMap(({ pointer, urn }) => {
      const detail = found.get(urn);
      return detail === undefined ? [] : [{ pointer, detail }];
    });
  }

  async function registerProblem(urn: string, definitions: unknown, isOpen: boolean, { tenantId, wait }: Context) {
    const prefix = urns.register('');
    if (!urn.startsWith(prefix)) return `does not name a register: its URN must begin with ${prefix}`;
    const name = urn.slice(prefix.length);
    const definition = definitionIn(definitions, name);
    if (!definition?.hasArraySchema) return 'names a register that does not exist';
    const isMissing = (entries: Revision | undefined) => !Array.isArray(entries?.configuration);
    const read = configuration.activeOrLatest(registerNamespace, name, { tenantId }, { lacks: isMissing });
    if (isMissing(await wait(read))) return 'names a register that does not exist';
    const isClosed = isOpen && !definition.anonymousRead;
    return isClosed ? 'names a register that applicants without an account cannot read (anonymousRead)' : undefined;
  }

  /** Checks `definition`, which may be any JSON object. Throws PlatformError, or Problem `busy`. */
  return async function check(
    definition: Record<string, unknown>,
    { tenantId }: { tenantId: string },
  ): Promise<CheckResult> {
    const notes = await validator.inspect(tenantId, definition);
    const { parsed, errors } = parse(definition);
    const wait = withinTotal(longestReads * callTimeout, () => new PlatformError('configuration', 'timeout'));
    const warnings = parsed
      ? [...contradictionsOf(parsed), ...(await namedProblems(parsed, notes.registers, { tenantId, wait }))]
      : [];
    const problems = [
      ...[...errors, ...idProblems(definition.id), ...notes.errors].map(as('error')),
      ...[...notes.warnings, ...warnings].map(as('warning')),
    ];
    return { problems: problems.slice(0, listed), truncated: notes.truncated || problems.length > listed };
  };
}

function as(severity: DefinitionProblem['severity']) {
  return ({ pointer, detail }: FieldError): DefinitionProblem => ({ pointer, detail, severity });
}

function parse(definition: Record<string, unknown>): { parsed?: FormDefinition; errors: FieldError[] } {
  const id = typeof definition.id === 'string' ? definition.id : 'definition';
  try {
    return { parsed: parseDefinition(id, definition), errors: [] };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { errors: error.errors ?? [] };
  }
}
