// Finds the register of a control, and converts its entries into choices. The options of the control have the format of
// the platform's form editor.
import { isObject, type JsonObject, valueAt } from './json.ts';

/** An answer that people can choose. */
export interface Choice {
  value: unknown;
  label: string;
  labelFr?: string | undefined;
}

export interface RegisterUse {
  name: string;
  /** Names of the two members of an entry that contain the stored value and the label for people. */
  value: string | undefined;
  label: string | undefined;
}

const marker = ':/configuration/data-register/';

/** Returns the register that a control names; undefined if it names none. */
export function registerOf({ register }: JsonObject): RegisterUse | undefined {
  if (!isObject(register) || typeof register.urn !== 'string') return undefined;
  const at = register.urn.indexOf(marker);
  if (at < 0) return undefined;
  const text = (name: string) => (typeof register[name] === 'string' ? String(register[name]) : undefined);
  const object = text('objectPathInArray');
  return {
    name: register.urn.slice(at + marker.length),
    value: text('value') ?? object,
    label: text('label') ?? object,
  };
}

/**
 * Converts the entries of a register into choices. Leaves out entries without a usable value. Of several entries with
 * the same value, keeps the first.
 */
export function choicesFrom(entries: unknown, { value, label }: RegisterUse): Choice[] {
  if (!Array.isArray(entries)) return [];
  const choices = new Map<unknown, Choice>();
  for (const entry of entries) {
    const choice = isObject(entry) ? choiceFrom(entry, value, label) : { value: entry, label: String(entry) };
    if (isUsable(choice.value) && !choices.has(choice.value)) choices.set(choice.value, choice);
  }
  return [...choices.values()];
}

const isUsable = (value: unknown) => typeof value === 'number' || (typeof value === 'string' && value !== '');

function choiceFrom(entry: JsonObject, value: string | undefined, label: string | undefined): Choice {
  const labelName = label ?? ['label', 'name', 'title'].find((name) => typeof entry[name] === 'string') ?? 'value';
  const stored = member(entry, value ?? ['value', 'code', 'id'].find((name) => isUsable(entry[name])) ?? labelName);
  const shown = member(entry, labelName) ?? stored;
  const french = entry[`${labelName}Fr`];
  return { value: stored, label: String(shown), labelFr: typeof french === 'string' ? french : undefined };
}

const member = (entry: JsonObject, path: string): unknown => entry[path] ?? valueAt(entry, path.split('.'));
