// GOV.UK's error summary: shows the same errors as the fields, links to the fields, and takes the focus.
import { useEffect, useRef } from 'preact/hooks';
import type { FieldError } from './field-error.ts';

/** The focus moves to the summary whenever `errors` is another array, so each submission makes a new one. */
export function ErrorSummary({ errors }: { errors: readonly FieldError[] }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), [errors]);
  if (errors.length === 0) return null;
  return (
    <div class="error-summary" role="alert" tabIndex={-1} ref={box}>
      <h2>There is a problem</h2>
      <ul>
        {errors.map(({ id, text }) => (
          <li key={id + text}>
            <a
              href={`#${id}`}
              onClick={(event) => {
                event.preventDefault();
                document.getElementById(id)?.focus();
              }}
            >
              {text}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
