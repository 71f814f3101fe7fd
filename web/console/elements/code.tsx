// Text in a fixed-width font that scrolls independently of the page.
import { ScrollRegion } from './scroll-region.tsx';

export function Code({ label, text }: { label: string; text: string }) {
  return (
    <ScrollRegion label={label}>
      <pre>
        <code>{text}</code>
      </pre>
    </ScrollRegion>
  );
}
