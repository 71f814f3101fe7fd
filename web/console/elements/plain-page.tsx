// A page without navigation: sign-in, the choice of a tenant, and failures of the console itself.
import type { ComponentChildren } from 'preact';
import { useTitle } from './page.tsx';

export function PlainPage({ title, children }: { title: string; children: ComponentChildren }) {
  useTitle(title);
  return (
    <main class="plain" id="main">
      <p class="product">Formgate console</p>
      <h1 tabIndex={-1}>{title}</h1>
      {children}
    </main>
  );
}
