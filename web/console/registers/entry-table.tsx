// Shows the entries of a register as a table with search and pages. One entry at a time can be added, edited or
// deleted.
import { useState } from 'preact/hooks';
import { folded } from '../../apply/model/search.ts';
import { Select, TextField } from '../elements/fields.tsx';
import { Table } from '../elements/table.tsx';
import { EntryForm } from './entry-form.tsx';
import { cellText, columnsOf, type Entry, hasText, keyOf, type Register } from './register.ts';

const pageSize = 50;
/** The member that the form service uses as the key by default. */
const defaultKey = 'value';

interface Props {
  register: Register;
  /** True while the register is loaded again. Until then, the entries may be those before the last change. */
  isLoading: boolean;
  /** Called with the text to announce after a change. */
  onChanged(text: string): void;
}

/** The entry that is being edited, or `new` while an entry is being added. */
type Edited = { entry: Entry } | 'new' | undefined;

export function EntryTable({ register, isLoading, onChanged }: Props) {
  const [search, setSearch] = useState('');
  const [start, setStart] = useState(0);
  const [edited, setEdited] = useState<Edited>();
  const columns = columnsOf(register.entries);
  const [chosenKey, setKeyField] = useState(defaultKey);
  // The columns may change when the register is loaded again.
  const keyField = columns.includes(chosenKey) ? chosenKey : (columns[0] ?? defaultKey);
  const wanted = folded(search);
  const found = wanted === '' ? register.entries : register.entries.filter((entry) => hasText(entry, wanted));
  const from = Math.min(start, Math.max(0, Math.ceil(found.length / pageSize) - 1) * pageSize);
  const close = (text: string | undefined) => {
    setEdited(undefined);
    document.getElementById('entries-title')?.focus();
    if (text !== undefined) onChanged(text);
  };
  return (
    <section aria-labelledby="entries-title">
      <h2 id="entries-title" tabIndex={-1}>
        Entries
      </h2>
      <div class="columns">
        <TextField id="entry-search" type="search" label="Search in the entries" value={search} onChange={setSearch} />
        {columns.length > 1 && (
          <Select
            id="key-field"
            label="Member that is the key"
            value={keyField}
            onChange={setKeyField}
            options={columns.map((name) => [name, name])}
          />
        )}
      </div>
      <p role="status">{countText(found.length, register.entries.length)}</p>
      {edited === undefined ? (
        <button type="button" class="button quiet" disabled={isLoading} onClick={() => setEdited('new')}>
          Add an entry
        </button>
      ) : (
        <EntryForm
          key={edited === 'new' ? '' : keyOf(edited.entry, keyField)}
          register={register.name}
          columns={columns}
          entries={register.entries}
          isText={register.entries.some((entry) => typeof entry === 'string')}
          keyField={keyField}
          entry={edited === 'new' ? undefined : edited.entry}
          onClose={close}
        />
      )}
      <Rows
        entries={found.slice(from, from + pageSize)}
        columns={columns}
        keyField={keyField}
        isLoading={isLoading}
        onEdit={(entry) => setEdited({ entry })}
      />
      <Pages from={from} total={found.length} onMove={setStart} />
    </section>
  );
}

interface RowsProps {
  entries: readonly Entry[];
  columns: readonly string[];
  keyField: string;
  isLoading: boolean;
  onEdit(entry: Entry): void;
}

function Rows({ entries, columns, keyField, isLoading, onEdit }: RowsProps) {
  const names = columns.length === 0 ? ['Entry'] : columns;
  return (
    <Table
      caption="Entries"
      hidesCaption
      empty="No entries."
      columns={[...names, 'Action']}
      rows={entries.map((entry, index) => {
        const key = keyOf(entry, keyField);
        const cells = typeof entry === 'string' ? [entry] : columns.map((name) => cellText(entry[name]));
        return {
          key: `${index} ${key}`,
          cells: [...cells, <Edit key="edit" name={key} isLoading={isLoading} onEdit={() => onEdit(entry)} />],
        };
      })}
    />
  );
}

function Edit({ name, isLoading, onEdit }: { name: string | undefined; isLoading: boolean; onEdit(): void }) {
  if (name === undefined || name === '') return <>No key</>;
  return (
    <button type="button" class="link" disabled={isLoading} onClick={onEdit}>
      Edit<span class="hidden"> {name}</span>
    </button>
  );
}

function Pages({ from, total, onMove }: { from: number; total: number; onMove(start: number): void }) {
  if (total <= pageSize) return null;
  const last = Math.min(from + pageSize, total);
  const [isFirst, isLast] = [from === 0, last >= total];
  // A button with `disabled` would lose the focus.
  return (
    <div class="pages">
      <button
        type="button"
        class="button quiet"
        aria-disabled={isFirst}
        onClick={() => !isFirst && onMove(from - pageSize)}
      >
        Previous
      </button>
      <span role="status">
        {from + 1} to {last} of {total}
      </span>
      <button
        type="button"
        class="button quiet"
        aria-disabled={isLast}
        onClick={() => !isLast && onMove(from + pageSize)}
      >
        Next
      </button>
    </div>
  );
}

function countText(found: number, all: number): string {
  const text = `${all} ${all === 1 ? 'entry' : 'entries'}`;
  return found === all ? text : `${found} of ${text}`;
}
