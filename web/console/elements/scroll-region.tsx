// Content that scrolls independently of the page. People without a mouse scroll it with the keyboard, so the region
// takes the focus (WCAG 2.1.1).
import type { ComponentChildren } from 'preact';

interface Props {
  label: string;
  children: ComponentChildren;
}

export function ScrollRegion({ label, children }: Props) {
  return (
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
