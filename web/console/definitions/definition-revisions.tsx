// Lists the revisions of a definition. Compares two revisions, and lets forms use an earlier revision.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Select } from '../elements/fields.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { type ListPage, MoreButton } from '../elements/more-button.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { ScrollRegion } from '../elements/scroll-region.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { definitionIn, type Located, operationRequest, type Revision, revisionsRequest } from './definition.ts';
import { type DiffLine, diffLines } from './diff-lines.ts';

interface Props {
  located: Located;
  version: number;
  onChanged(text: string): void;
}

export function DefinitionRevisions({ located, version, onChanged }: Props) {
  const { id, source } = located;
  const read = (after?: string) => send<ListPage<Revision>>(revisionsRequest(id, source, after));
  const load = useLoad(id, read, version);
  return (
    <section aria-labelledby="revisions-title">
      <h2 id="revisions-title">Revisions</h2>
      <Loaded load={load}>
        {({ results }) => (
          <>
            <RevisionTable located={located} revisions={results} onChanged={onChanged} />
            <MoreButton label="Show earlier revisions" load={load} read={read} />
            {results.length > 1 && <Compare key={version} located={located} revisions={results} />}
          </>
        )}
      </Loaded>
      <Curl request={revisionsRequest(id, source)} label="Revisions as a curl command" />
    </section>
  );
}

function RevisionTable({ located, revisions, onChanged }: { revisions: readonly Revision[] } & Omit<Props, 'version'>) {
  const { id, source, latest, active } = located;
  const action = useAction();
  const activate = (revision: number) =>
    action.run(async () => {
      await send(operationRequest(id, source, { operation: 'SET-ACTIVE-REVISION', revision }));
      onChanged(`Forms use revision ${revision}.`);
    });
  return (
    <>
      <Table
        caption="Revisions, newest first"
        hidesCaption
        columns={['Revision', 'Changed', 'Used by forms', 'Action']}
        rows={revisions.map(({ revision, lastUpdated }) => ({
          key: String(revision),
          cells: [
            `${revision}${revision === latest ? ' (latest, editable)' : ''}`,
            <Time key="time" at={lastUpdated} />,
            isUsed(revision, latest, active) ? 'Yes' : '',
            revision === active || revision === latest ? (
              ''
            ) : (
              <button
                type="button"
                class="link"
                key="use"
                aria-disabled={action.isBusy}
                onClick={() => void activate(revision)}
              >
                Use<span class="hidden"> revision {revision}</span>
              </button>
            ),
          ],
        }))}
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}

function isUsed(revision: number, latest: number, active: number | undefined): boolean {
  return revision === (active ?? latest);
}

function Compare({ located: { id, source }, revisions }: { located: Located; revisions: readonly Revision[] }) {
  const [newest, older] = revisions;
  const [from = String(older?.revision), setFrom] = useState<string>();
  const [to = String(newest?.revision), setTo] = useState<string>();
  const options = revisions.map(({ revision }) => [String(revision), `Revision ${revision}`] as const);
  const textOf = (number: string) => {
    const found = revisions.find(({ revision }) => String(revision) === number);
    return JSON.stringify(definitionIn(found?.configuration, id, source) ?? null, undefined, 2);
  };
  return (
    <div class="action">
      <div class="columns">
        <Select id="definition-from" label="Compare" value={from} onChange={setFrom} options={options} />
        <Select id="definition-to" label="with" value={to} onChange={setTo} options={options} />
      </div>
      <Differences lines={diffLines(textOf(from), textOf(to))} />
    </div>
  );
}

const marks = { same: ' ', added: '+', removed: '-' };
const names = { same: '', added: 'Added: ', removed: 'Removed: ' };

function Differences({ lines }: { lines: readonly DiffLine[] }) {
  if (lines.every(({ kind }) => kind === 'same')) return <p role="status">The revisions are equal.</p>;
  return (
    <ScrollRegion label="Differences">
      <pre>
        {lines.map(({ kind, text }, index) => (
          <span key={`${index} ${kind}`} class={`line ${kind}`}>
            <span aria-hidden="true">{marks[kind]} </span>
            <span class="hidden">{names[kind]}</span>
            {text}
            {'\n'}
          </span>
        ))}
      </pre>
    </ScrollRegion>
  );
}
