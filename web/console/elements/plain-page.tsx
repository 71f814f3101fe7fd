// A page without navigation: sign-in, the choice of a tenant, and failures of the console itself.
import type { ComponentChildren } from 'preact';
import { useHeadingFocus, useTitle } from './page.tsx';

interface Props {
  title: string;
  /** True if this is shown only until the first page is known. */
  isWaiting?: boolean;
  children: ComponentChildren;
}

export function PlainPage({ title, isWaiting = false, children }: Props) {
  useTitle(title);
  const heading = useHeadingFocus(!isWaiting);
  return (
    <main class="plain" id="main">
      <p class="product">Formgate console</p>
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </main>
  );
}
