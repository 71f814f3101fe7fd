// An error of a field. Both the error summary and the field itself show it.

export interface FieldError {
  /** Id of the input that has the error. */
  id: string;
  text: string;
}

export function errorOf(errors: readonly FieldError[], id: string): string | undefined {
  return errors.find((error) => error.id === id)?.text;
}
