// Translates the errors of the validator Ajv into pointers and short descriptions.
import type { ErrorObject } from 'ajv';
import { type FieldError, jsonPointer } from '../../service/http/problem.ts';

/**
 * Describes one error. The pointer is relative to the validated value. For a missing or unexpected member, the pointer
 * names that member.
 */
export function describeError(error: ErrorObject): FieldError {
  return { pointer: `${error.instancePath}${memberOf(error)}`, detail: detailOf(error) };
}

function memberOf({ params }: ErrorObject): string {
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
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
