// GOV.UK's error summary: shows the same errors as the fields, links to the fields, and takes the focus.
import { useEffect, useRef } from 'preact/hooks';
import type { FieldError } from './field-error.ts';

/** `attempt` is a number that grows with each submission, so that the focus moves each time. */
export function ErrorSummary({ errors, attempt }: { errors: readonly FieldError[]; attempt: number }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (attempt > 0) box.current?.focus();
  }, [attempt]);
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
