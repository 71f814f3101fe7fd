// Lists the revisions of a register. Saves the current state as a revision, compares revisions, and pins the revision
// that forms use.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { ActionButton } from '../elements/action-button.tsx';
import { Curl } from '../elements/curl.tsx';
import { Select } from '../elements/fields.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { type ListPage, MoreButton } from '../elements/more-button.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { Changes } from './changes.tsx';
import {
  type Comparison,
  compareRequest,
  keepRequest,
  pinRequest,
  type Revision,
  revisionsRequest,
} from './register.ts';

interface Props {
  name: string;
  version: number;
  onChanged(text: string): void;
}

export function RegisterRevisions({ name, version, onChanged }: Props) {
  const read = (after?: string) => send<ListPage<Revision>>(revisionsRequest(name, after));
  const load = useLoad(name, read, version);
  return (
    <section aria-labelledby="revisions-title">
      <h2 id="revisions-title">Revisions</h2>
      <p>
        Changes edit the latest revision. Keep it to be able to return to it. Forms use the pinned revision, or the
        latest if none is pinned.
      </p>
      <Loaded load={load}>
        {({ results }) => (
          <>
            <RevisionTable name={name} revisions={results} onChanged={onChanged} />
            <MoreButton label="Show earlier revisions" load={load} read={read} />
            {results.length > 1 && <Compare key={version} name={name} revisions={results} />}
          </>
        )}
      </Loaded>
      <Curl request={revisionsRequest(name)} label="Revisions as a curl command" />
      <ActionButton
        label="Keep the current state as a revision"
        request={keepRequest(name)}
        onDone={() => onChanged('The current state is kept as a revision.')}
      />
    </section>
  );
}

function RevisionTable({ name, revisions, onChanged }: { revisions: readonly Revision[] } & Omit<Props, 'version'>) {
  const action = useAction();
  const pin = (revision: number) =>
    action.run(async () => {
      await send(pinRequest(name, revision));
      onChanged(`Revision ${revision} is pinned: forms use it.`);
    });
  return (
    <>
      <Table
        caption="Revisions, newest first"
        hidesCaption
        columns={['Revision', 'Changed', 'Entries', 'Used by forms', 'Action']}
        rows={revisions.map(({ revision, lastUpdated, entries, latest, active }) => ({
          key: String(revision),
          cells: [
            `${revision}${latest ? ' (latest)' : ''}`,
            <Time key="time" at={lastUpdated} />,
            entries,
            active ? 'Yes' : '',
            active ? (
              ''
            ) : (
              <button
                type="button"
                class="link"
                key="pin"
                aria-disabled={action.isBusy}
                onClick={() => void pin(revision)}
              >
                Pin<span class="hidden"> revision {revision}</span>
              </button>
            ),
          ],
        }))}
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}

function Compare({ name, revisions }: { name: string; revisions: readonly Revision[] }) {
  const [newest, older] = revisions;
  const [from = String(older?.revision), setFrom] = useState<string>();
  const [to = String(newest?.revision), setTo] = useState<string>();
  const [shown, setShown] = useState<{ of: string; comparison: Comparison }>();
  const action = useAction();
  // A comparison is not shown for another selection.
  const key = `${from} ${to}`;
  const request = compareRequest(name, Number(from), Number(to), 'value');
  const options = revisions.map(({ revision }) => [String(revision), `Revision ${revision}`] as const);
  const compare = (event: Event) => {
    event.preventDefault();
    void action.run(async () => setShown({ of: key, comparison: await send<Comparison>(request) }));
  };
  return (
    <form class="action" onSubmit={compare}>
      <div class="columns">
        <Select id="compare-from" label="Compare" value={from} onChange={setFrom} options={options} />
        <Select id="compare-to" label="with" value={to} onChange={setTo} options={options} />
      </div>
      <button type="submit" class="button quiet" aria-disabled={action.isBusy}>
        Compare
      </button>
      <Curl request={request} label="Compare as a curl command" />
      {shown?.of === key && <Changes comparison={shown.comparison} />}
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}
