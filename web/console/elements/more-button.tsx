// A button that appends the next page of a list to the pages that are already shown.
import type { Load } from './loaded.tsx';
import { ProblemBox } from './problem-box.tsx';
import { useAnnounce } from './status.tsx';
import { useAction } from './use-action.ts';

export interface ListPage<T> {
  results: T[];
  /** `next` is the value of `after` in the request for the next page. */
  page: { next: string | null };
}

interface Props<T> {
  label: string;
  /** The list; its value has all pages that are shown. */
  load: Load<ListPage<T>>;
  read(after: string): Promise<ListPage<T>>;
}

export function MoreButton<T>({ label, load, read }: Props<T>) {
  const announce = useAnnounce();
  const action = useAction();
  const next = load.value?.page.next;
  if (!load.value || !next) return null;
  const { results: shown } = load.value;
  const more = () =>
    action.run(async () => {
      const { results, page } = await read(next);
      load.set({ results: [...shown, ...results], page });
      announce(`The list has ${results.length} more lines.`);
    });
  return (
    <>
      <button type="button" class="button quiet" aria-disabled={action.isBusy} onClick={() => void more()}>
        {label}
      </button>
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}
