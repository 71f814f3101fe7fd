// Checks the UI schema of a form definition against its data schema, and collects the registers that the UI
// schema names. Checks only the JSON Forms elements that the form editor documents.
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';
import { isObject } from '../../service/json-value.ts';
import { itemsOf, lookUp, type Place, pathOf } from './schema-lookup.ts';

export interface NamedRegister {
  pointer: string;
  urn: string;
}

export interface UiSchemaNotes {
  problems: FieldError[];
  registers: NamedRegister[];
}

type Path = readonly (string | number)[];

/** Lists the problems of the UI schema and the registers that it names. Pointers are relative to the definition. */
export function inspectUiSchema(uiSchema: unknown, dataSchema: unknown): UiSchemaNotes {
  const notes: UiSchemaNotes = { problems: [], registers: [] };
  const root = isObject(dataSchema) ? dataSchema : {};
  visitElement(uiSchema, ['uiSchema'], { notes, root: { root, schema: root }, places: [{ root, schema: root }] });
  return notes;
}

interface Visit {
  notes: UiSchemaNotes;
  root: Place;
  /**
   * The data schemas to which scopes are relative: the schema of the whole form or, within a list, the schemas of its
   * items.
   */
  places: readonly Place[];
}

function visitElement(element: unknown, path: Path, visit: Visit): void {
  if (!isObject(element)) return;
  const { type, scope, options, rule, elements } = element;
  const note = (at: Path, detail: string) => visit.notes.problems.push({ pointer: jsonPointer(at), detail });
  const found = scope === undefined ? undefined : checkScope(scope, [...path, 'scope'], visit);
  if (type === 'Control' && scope === undefined) note(path, 'is a control without a scope');
  if (isObject(rule)) visitCondition(rule.condition, [...path, 'rule', 'condition'], visit);
  // Scopes within a list are relative to the list's items. Within any other element, scopes are relative to the same
  // value as the element's own scope.
  const items = found && itemsOf(found);
  const inner = items && items.length > 0 ? { ...visit, places: items } : visit;
  visitAll(elements, [...path, 'elements'], inner);
  if (!isObject(options)) return;
  const { register, detail } = options;
  if (isObject(register) && typeof register.urn === 'string')
    visit.notes.registers.push({ pointer: jsonPointer([...path, 'options', 'register', 'urn']), urn: register.urn });
  visitElement(detail, [...path, 'options', 'detail'], inner);
}

function visitAll(elements: unknown, path: Path, visit: Visit): void {
  if (!Array.isArray(elements)) return;
  for (const [index, element] of elements.entries()) visitElement(element, [...path, index], visit);
}

/** Checks the scopes of a rule's condition. A condition has a scope, or combines other conditions with AND or OR. */
function visitCondition(condition: unknown, path: Path, visit: Visit): void {
  if (!isObject(condition)) return;
  if (condition.scope !== undefined) checkScope(condition.scope, [...path, 'scope'], visit);
  const { conditions } = condition;
  if (!Array.isArray(conditions)) return;
  for (const [index, inner] of conditions.entries()) visitCondition(inner, [...path, 'conditions', index], visit);
}

/**
 * Returns the data schemas at the scope. If the scope is not a path, or if the data schema does not describe the path,
 * reports the scope and returns undefined.
 */
function checkScope(scope: unknown, path: Path, { notes, places, root }: Visit): Place[] | undefined {
  const note = (detail: string) => {
    notes.problems.push({ pointer: jsonPointer(path), detail });
    return undefined;
  };
  if (typeof scope !== 'string' || !/^#(?:\/|$)/.test(scope)) return note('must be a path such as #/properties/name');
  const names = pathOf(scope.slice(1));
  return (
    lookUp(places, names) ?? lookUp([root], names) ?? note('names a property that the data schema does not describe')
  );
}
