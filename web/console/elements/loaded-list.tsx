// A list that is loaded page by page, with a line above it that says what is shown.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type Load, Loaded } from './loaded.tsx';

interface Props<T> {
  load: Load<T>;
  /** Identifies the page of the list. After a change of page, the line takes the focus: the followed link is gone. */
  page: string;
  /** Describes what is shown, such as the number of lines. */
  textOf(value: T): string;
  children: (value: T) => ComponentChildren;
}

export function LoadedList<T>({ load, page, textOf, children }: Props<T>) {
  const line = useRef<HTMLParagraphElement>(null);
  const former = useRef(page);
  useEffect(() => {
    if (former.current !== page) line.current?.focus();
    former.current = page;
  }, [page]);
  const { value, problem } = load;
  const isWaiting = value === undefined && !problem;
  // Screen readers read a change of the line only if the line was there before.
  return (
    <>
      <p role="status" tabIndex={-1} ref={line}>
        {isWaiting && 'Loading …'}
        {value !== undefined && textOf(value)}
      </p>
      {!isWaiting && <Loaded load={load}>{children}</Loaded>}
    </>
  );
}

export function onThisPage(count: number, noun: string): string {
  return `${count} ${count === 1 ? noun : `${noun}s`} on this page`;
}

interface LinksProps {
  /** The position after which the shown page begins; empty at the first page. */
  after: string;
  next: string | null | undefined;
  /** Returns the address of the page that begins after a position. */
  at(after: string): string;
}

/** The address before each address, as far as the list was shown since the console was loaded. Cursors lead forward. */
const before = new Map<string, string>();

export function PageLinks({ after, next, at }: LinksProps) {
  const here = at(after);
  if (next) before.set(at(next), here);
  const previous = before.get(here);
  return (
    <nav class="pages" aria-label="Pages of the list">
      {after !== '' && <a href={at('')}>First page</a>}
      {previous !== undefined && <a href={previous}>Previous page</a>}
      {next && <a href={at(next)}>Next page</a>}
    </nav>
  );
}
