// Computes the value of a configuration after an edit. Then checks the size of the value, validates the value against
// its schema and the rules of this server's own services, and checks the tenants' schemas and templates in it.
import { type FieldError, invalidRequest, Problem } from '../../service/http/problem.ts';
import { hasMoreValues, mostJsonValues, tooManyValues } from '../../service/json-size.ts';
import type { TenantCode } from '../tenant-code.ts';
import type { TenantPool } from '../tenant-pool.ts';
import { changedCode, type FindCode, mostWritten } from '../written-code.ts';
import { applyEdit, type ConfigurationKey, coreScope, type Edit, EditError, tooLong } from './configuration.ts';
import { createConfigurationStore } from './store.ts';

export interface CheckOptions {
  tenantPool: TenantPool;
  code: Pick<TenantCode, 'complete' | 'check'>;
  /**
   * The configurations of this server's own services, keyed by `namespace:name`. Each has a schema that no definition
   * overrides, and a function that finds the schemas and templates in its value. `longest` is the maximum length of a
   * tenant's value, if it is smaller than `largest`.
   */
  builtIn: Record<string, BuiltIn>;
  /**
   * Maximum length of a value's JSON text in characters. Also limits the growth of a value by repeated edits, and by
   * its schema's defaults.
   */
  largest: number;
  /**
   * Checks a value that its schema accepts. Returns the reason if the value is rejected. `before` is the current value.
   */
  refuse(key: ConfigurationKey, value: unknown, before: unknown): Promise<FieldError | undefined>;
}

interface BuiltIn {
  schema: unknown;
  findCode: FindCode;
  longest?: number;
}

/**
 * Returns the value after the edit, with its schema's defaults. Throws 400 if the value, or a schema or template in it,
 * is invalid.
 */
export async function checkedValue(
  options: CheckOptions,
  key: ConfigurationKey,
  before: unknown,
  edit: Edit,
): Promise<unknown> {
  const { code, builtIn } = options;
  const label = `${key.namespace}:${key.name}`;
  const value = applyOrReject(before, edit);
  const refuse = (errors: FieldError[]) => invalidValue(label, edit, errors);
  const own = builtIn[label];
  const largest = largestOf(options.largest, key, own, before);
  const text = JSON.stringify(value);
  if (text.length > largest) throw refuse([tooLong(largest)]);
  if (hasTooManyValues(text, key, before)) throw refuse([{ pointer: '', detail: tooManyValues }]);
  const store = createConfigurationStore(options.tenantPool.of(key.scope));
  const schema = own ? own.schema : (await store.definition(key.scope, key.namespace, key.name))?.configurationSchema;
  if (schema === undefined) return value;
  const result = await code.complete(key.scope, schema, value, largest);
  if (!result.valid) throw refuse([{ pointer: result.pointer, detail: result.detail }]);
  const refused = await options.refuse(key, result.value, before);
  if (refused) throw refuse([refused]);
  const changed = own ? changedCode(own.findCode, before, result.value) : [];
  if (!changed) throw refuse([{ pointer: '', detail: `has more than ${mostWritten} schemas and templates` }]);
  const faults = await code.check(key.scope, changed);
  if (faults.length > 0) throw refuse(faults);
  return result.value;
}

/** A value with more members that an earlier version stored can still be changed, if its text does not grow. */
function hasTooManyValues(text: string, { scope }: ConfigurationKey, before: unknown): boolean {
  if (scope === coreScope || !hasMoreValues(text, mostJsonValues)) return false;
  const present = JSON.stringify(before) ?? '';
  return text.length > present.length || !hasMoreValues(present, mostJsonValues);
}

/** A longer value that an earlier version stored can still be changed, if it does not grow. */
function largestOf(largest: number, { scope }: ConfigurationKey, own: BuiltIn | undefined, before: unknown): number {
  if (own?.longest === undefined || scope === coreScope) return largest;
  const present = before === undefined ? 0 : JSON.stringify(before).length;
  return Math.min(largest, Math.max(own.longest, present));
}

function invalidValue(label: string, { operation }: Edit, found: FieldError[]): Problem {
  const [first] = found;
  const place = first?.pointer ? `${first.pointer} ` : '';
  const errors = found.map(({ pointer, detail }) => ({ pointer: `${operandPointers[operation]}${pointer}`, detail }));
  const detail = `Value not valid for configuration '${label}': ${place}${first?.detail ?? ''}`;
  return new Problem('invalid-request', detail, { errors });
}

/**
 * For each operation, the pointer to its operand in the request body. An error that the edit causes is below
 * this pointer. Any other error was in the value before the edit.
 */
const operandPointers = { UPDATE: '/update', REPLACE: '/configuration', DELETE: '' };

function applyOrReject(latest: unknown, edit: Edit): unknown {
  try {
    return applyEdit(latest, edit);
  } catch (error) {
    if (error instanceof EditError) throw invalidRequest([{ pointer: '/update', detail: error.message }]);
    throw error;
  }
}
