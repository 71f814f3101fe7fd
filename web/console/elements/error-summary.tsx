// The error summary of the console's forms: the same errors as at the fields.
import { ErrorSummary as SharedSummary } from '../../shared/error-summary.tsx';
import type { FieldError } from './field-error.ts';

/** The focus moves to the summary whenever `errors` is another array, so each submission makes a new one. */
export function ErrorSummary({ errors }: { errors: readonly FieldError[] }) {
  const items = errors.map(({ id, text }) => ({ text, target: id }));
  return <SharedSummary title="There is a problem" attempt={errors} items={items} />;
}
