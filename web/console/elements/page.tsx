// The heading of a page: sets the title of the window, and moves the focus to the heading after a change of page.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

const shown = { title: '', errors: 0 };

function retitle(): void {
  document.title = `${shown.errors > 0 ? 'Error: ' : ''}${shown.title} – Formgate console`;
}

export function useTitle(title: string): void {
  // A layout effect is used, because the title must be right before a screen reader reads the page.
  useLayoutEffect(() => {
    shown.title = title;
    retitle();
  }, [title]);
}

/** Makes the window's title begin with "Error:" while a field has an error. */
export function useErrorInTitle(hasError: boolean): void {
  useLayoutEffect(() => {
    if (!hasError) return;
    shown.errors += 1;
    retitle();
    return () => {
      shown.errors -= 1;
      retitle();
    };
  }, [hasError]);
}

/** True until the first page is shown. That page leaves the focus where the browser puts it. */
let isFirst = true;

/** Moves the focus to the heading of a page, unless the page is the first one or `isPage` is false. */
export function useHeadingFocus(isPage = true) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isPage) return;
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, []);
  return heading;
}

interface Props {
  title: string;
  /** Link that is shown above the heading. */
  back?: { href: string; text: string };
  children: ComponentChildren;
}

export function Page({ title, back, children }: Props) {
  useTitle(title);
  const heading = useHeadingFocus();
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
