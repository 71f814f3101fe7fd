// The difference between two states of a register.
import { Table } from '../elements/table.tsx';
import { type Change, type Comparison, cellText, type Entry } from './register.ts';

const words = { added: 'Added', changed: 'Changed', removed: 'Removed' };

export function Changes({ comparison }: { comparison: Comparison }) {
  const { added, changed, removed, unchanged, reordered, changes, truncated } = comparison;
  return (
    <>
      <p role="status">
        {added} added, {changed} changed, {removed} removed, {unchanged} unchanged.
        {reordered && ' The order changes.'}
      </p>
      {truncated && <p>Only the first {changes.length} changes are listed.</p>}
      <Table
        caption="Changes"
        empty="No entry differs."
        columns={['Key', 'Change', 'Before', 'After']}
        rows={changes.map((change, index) => ({
          key: String(index),
          cells: [change.key ?? '–', <Kind key="kind" change={change} />, textOf(change.before), textOf(change.after)],
        }))}
      />
    </>
  );
}

function Kind({ change: { change } }: { change: Change }) {
  return <span class={`tag ${change}`}>{words[change]}</span>;
}

function textOf(entry: Entry | undefined) {
  return entry === undefined ? '–' : <code>{cellText(entry)}</code>;
}
