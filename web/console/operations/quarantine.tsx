// Lists and releases quarantined items, which cannot be processed because of their own content.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { useLoad } from '../elements/loaded.tsx';
import { LoadedList, onThisPage, PageLinks } from '../elements/loaded-list.tsx';
import type { ListPage } from '../elements/more-button.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { addressOfPage } from '../location.ts';
import { useSignedIn } from '../session/session-context.ts';
import { type QuarantinedItem, quarantineRequest, releaseRequest } from './operations.ts';

/** `after` is the position after which the shown page begins; empty at the first page. */
export function Quarantine({ after }: { after: string }) {
  const { tenant } = useSignedIn();
  const at = (next: string) => addressOfPage(tenant, ['operations'], new URLSearchParams(next && { after: next }));
  const load = useLoad(after, () => send<ListPage<QuarantinedItem>>(quarantineRequest(after)));
  return (
    <section aria-labelledby="quarantine-title">
      <h2 id="quarantine-title">Quarantine</h2>
      <p>These items failed because of their own content and are skipped. Correct the cause, then release the item.</p>
      <LoadedList load={load} page={after} textOf={({ results }) => onThisPage(results.length, 'item')}>
        {({ results, page }) => (
          <>
            <Items items={results} onReleased={() => load.reload()} />
            <PageLinks after={after} next={page.next} at={at} />
          </>
        )}
      </LoadedList>
      <Curl request={quarantineRequest(after)} label="Quarantine as a curl command" />
      <Curl request={releaseRequest('id')} label="Release as a curl command" />
    </section>
  );
}

function Items({ items, onReleased }: { items: readonly QuarantinedItem[]; onReleased(): void }) {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const action = useAction();
  const release = (id: string) =>
    action.run(async () => {
      await send(releaseRequest(id));
      announce('The item is released and will be retried.');
      onReleased();
    });
  return (
    <>
      <Table
        caption="Items in quarantine"
        hidesCaption
        empty="Nothing is in quarantine."
        columns={['Item', 'Form', 'Reason', 'Since', 'Attempts', 'Action']}
        rows={items.map((item) => ({
          key: item.id,
          cells: [
            item.kind,
            item.formId ? (
              <a class="id" href={addressOfPage(tenant, ['forms', item.formId])}>
                {item.formId}
              </a>
            ) : (
              (item.definitionId ?? '–')
            ),
            item.detail ? `${item.reason}: ${item.detail}` : item.reason,
            <Time key="since" at={item.firstSeen} />,
            item.attempts,
            item.released ? (
              'Released'
            ) : (
              <button
                type="button"
                class="link"
                key="release"
                aria-disabled={action.isBusy}
                onClick={() => void release(item.id)}
              >
                Release
                <span class="hidden">
                  {' '}
                  {item.kind} {item.formId ?? item.id}
                </span>
              </button>
            ),
          ],
        }))}
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}
