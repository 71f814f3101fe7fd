// An error of a field, for the summary and for the field itself.

export interface FieldError {
  /** Id of the input that has the error. */
  id: string;
  text: string;
}

export function errorOf(errors: readonly FieldError[], id: string): string | undefined {
  return errors.find((error) => error.id === id)?.text;
}
