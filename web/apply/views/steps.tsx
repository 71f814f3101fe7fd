// The list of steps: shows the current step, and links to the other steps.
import type { Fragment } from '../address.ts';
import type { FormPage } from '../model/elements.ts';
import type { Texts } from '../texts/texts.ts';

export const titleOf = (page: FormPage, number: number, texts: Texts) => page.title ?? texts.steps.page(number);

interface StepsProps {
  pages: readonly FormPage[];
  current: number | 'check';
  go(page: Fragment['page']): void;
  texts: Texts;
}

export function Steps({ pages, current, go, texts }: StepsProps) {
  const hasOneTask = pages.length === 0 || (pages.length === 1 && pages[0]?.title === undefined);
  if (hasOneTask) return null;
  const steps: { page: number | 'check'; title: string }[] = [
    ...pages.map((page, index) => ({ page: index + 1, title: titleOf(page, index + 1, texts) })),
    { page: 'check', title: texts.steps.check },
  ];
  return (
    <nav class="steps" aria-label={texts.steps.label}>
      <ol>
        {steps.map(({ page, title }) => (
          <li key={page}>
            <button
              type="button"
              class="link"
              aria-current={page === current ? 'step' : undefined}
              onClick={() => go(page)}
            >
              {title}
            </button>
          </li>
        ))}
      </ol>
    </nav>
  );
}
