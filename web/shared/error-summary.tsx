// The list of problems at the top of a page, as in GOV.UK's pattern: focus moves to it, and links lead to the fields.
import { useEffect, useRef } from 'preact/hooks';

export interface SummaryItem {
  text: string;
  /** Id of the element to focus; undefined if the problem has no field. */
  target?: string | undefined;
  /** Called before the focus moves. Shows the field, if it is on another page. */
  onFollow?: (() => void) | undefined;
}

/**
 * Moves the focus to the list whenever `attempt` has another value. If `attempt` is 0, the focus stays, because the
 * person followed a link in the error summary of another page.
 */
export function ErrorSummary({
  title,
  items,
  attempt,
}: {
  title: string;
  items: readonly SummaryItem[];
  attempt: unknown;
}) {
  const box = useRef<HTMLDivElement>(null);
  const hasItems = items.length > 0;
  const announced = useRef<unknown>(0);
  useEffect(() => {
    if (attempt === announced.current || !hasItems) return;
    announced.current = attempt;
    box.current?.focus();
  }, [attempt, hasItems]);
  if (!hasItems) return null;
  return (
    <div class="error-summary" role="alert" tabIndex={-1} ref={box} aria-labelledby="error-summary-title">
      <h2 id="error-summary-title">{title}</h2>
      <ul>
        {items.map((item) => (
          <li key={`${item.target} ${item.text}`}>
            {item.target === undefined ? item.text : <SummaryLink item={item} target={item.target} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

function SummaryLink({ item, target }: { item: SummaryItem; target: string }) {
  const follow = (event: Event) => {
    event.preventDefault();
    item.onFollow?.();
    focusOn(target);
  };
  return (
    <a href={`#${target}`} onClick={follow}>
      {item.text}
    </a>
  );
}

/** Waits until the element is shown, then moves the focus to it. For a group, the focus moves to its first control. */
export function focusOn(id: string): void {
  requestAnimationFrame(() =>
    setTimeout(() => {
      const element = document.getElementById(id);
      const control = element?.matches('fieldset, div')
        ? element.querySelector('input, select, textarea, button')
        : element;
      if (!(control instanceof HTMLElement)) return;
      (control.closest('.field') ?? control).scrollIntoView({ block: 'start' });
      control.focus({ preventScroll: true });
    }, 0),
  );
}
