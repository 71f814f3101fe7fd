// The heading of a page: sets the title of the window, and moves the focus to the heading after a change of page.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export function useTitle(title: string, hasError = false): void {
  // A layout effect is used, because the title must be right before a screen reader reads the page.
  useLayoutEffect(() => {
    document.title = `${hasError ? 'Error: ' : ''}${title} – Formgate console`;
  }, [title, hasError]);
}

/** True until the first page is shown. That page leaves the focus where the browser puts it. */
let isFirst = true;

interface Props {
  title: string;
  /** True if a field on the page has an error. The window's title then says so. */
  hasError?: boolean;
  /** Link that is shown above the heading. */
  back?: { href: string; text: string };
  children: ComponentChildren;
}

export function Page({ title, hasError = false, back, children }: Props) {
  useTitle(title, hasError);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  return (
    <>
      {back && (
        <p class="back">
          <a href={back.href}>{back.text}</a>
        </p>
      )}
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </>
  );
}
