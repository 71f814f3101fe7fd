// Translates the errors of the validator Ajv into pointers and short descriptions.
import type { ErrorObject } from 'ajv';
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';

/**
 * Describes one error. The pointer is relative to the validated value. For a missing or unexpected member, the pointer
 * names that member.
 */
export function describeError(error: ErrorObject): FieldError {
  return { pointer: `${error.instancePath}${memberPointer(error)}`, detail: cut(detailOf(error), longestDetail) };
}

/** Maximum length of a detail. Some messages of Ajv quote the schema, such as a pattern of a megabyte. */
const longestDetail = 300;
/**
 * Total length of the listed errors, in characters, after which no further error is listed. A pointer repeats all names
 * that lead to its value, so twenty errors could be twenty times as long as the data.
 */
const longestList = 65_536;

/** Returns the first errors: at most `most`, and fewer if they are long. `truncated` is true if there are more. */
export function firstErrors(all: Iterable<FieldError>, most: number): { errors: FieldError[]; truncated: boolean } {
  const errors: FieldError[] = [];
  let characters = 0;
  for (const error of all) {
    if (errors.length === most || characters > longestList) return { errors, truncated: true };
    errors.push(error);
    characters += error.pointer.length + error.detail.length;
  }
  return { errors, truncated: false };
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

function memberPointer({ params }: ErrorObject): string {
  const name = params.missingProperty ?? params.additionalProperty ?? params.unevaluatedProperty ?? params.propertyName;
  return typeof name === 'string' ? jsonPointer([name]) : '';
}

function detailOf({ keyword, message, params }: ErrorObject): string {
  switch (keyword) {
    case 'required':
      return 'is required';
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return 'is not expected';
    case 'enum':
      return `${message ?? 'is not allowed'}: ${allowed(params.allowedValues)}`;
    default:
      return message ?? 'is not valid';
  }
}

function allowed(values: unknown): string {
  const text = Array.isArray(values) ? values.map((value) => JSON.stringify(value)).join(', ') : '';
  return cut(text, 200);
}
