// Imports a CSV table that was pasted, dropped or chosen as a file. Shows the changes before they are made.
import { useState } from 'preact/hooks';
import { isEqual } from '../../apply/model/json.ts';
import { ApiProblem } from '../api/problem.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Select, TextArea, TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { type Action, useAction } from '../elements/use-action.ts';
import { type KeptValue, useKept } from '../session/kept.ts';
import { Changes } from './changes.tsx';
import { type Comparison, columnsOf, importRequest, type Register } from './register.ts';

interface Props {
  register: Register;
  onChanged(text: string): void;
}

interface Draft {
  csv: string;
  mode: string;
  keyField: string;
}

export function ImportCsv({ register, onChanged }: Props) {
  const columns = columnsOf(register.entries);
  const keyField = columns.includes('value') || columns.length === 0 ? 'value' : (columns[0] ?? 'value');
  const label = `CSV table for the register ${register.name}`;
  const draft = useKept<Draft>(`csv ${register.name}`, label, { csv: '', mode: 'upsert', keyField });
  const [preview, setPreview] = useState<{ of: string; comparison: Comparison }>();
  const [error, setError] = useState<string>();
  const action = useAction();
  const key = JSON.stringify(draft.value);
  const { csv, ...options } = draft.value;
  const dryRun = () => send<Comparison>(importRequest(register.name, csv, { ...options, dryRun: true }));
  const ask = async (event: Event) => {
    event.preventDefault();
    setError(csv.trim() === '' ? 'Paste a table, or choose a file' : undefined);
    if (csv.trim() === '') return document.getElementById('csv')?.focus();
    await action.run(async () => setPreview({ of: key, comparison: await dryRun() }));
  };
  const apply = (previewed: Comparison) =>
    action.run(async () => {
      // Somebody else may have changed the register since the preview. The import must make only the changes shown.
      const comparison = await dryRun();
      setPreview({ of: key, comparison });
      if (!isEqual(comparison, previewed))
        throw new ApiProblem(412, { detail: 'The register has changed since the preview. Check the changes again.' });
      const done = await send<Comparison>(importRequest(register.name, csv, { ...options, dryRun: false }));
      setPreview(undefined);
      draft.forget();
      onChanged(`Imported: ${done.added} added, ${done.changed} changed, ${done.removed} removed.`);
    });
  return (
    <section aria-labelledby="import-title">
      <h2 id="import-title">Import CSV</h2>
      <form onSubmit={(event) => void ask(event)} noValidate>
        <TableField draft={draft} error={error} />
        <ImportOptions draft={draft} />
        <button type="submit" class="button quiet" aria-disabled={action.isBusy}>
          Preview the changes
        </button>
      </form>
      {preview?.of === key && (
        <Preview comparison={preview.comparison} action={action} onApply={() => void apply(preview.comparison)} />
      )}
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      <Curl
        request={importRequest(register.name, csv || 'label,value\n', { ...options, dryRun: true })}
        label="Import as a curl command"
      />
    </section>
  );
}

const largestFile = 8 * 1024 * 1024;

function TableField({ draft, error }: { draft: KeptValue<Draft>; error: string | undefined }) {
  const [refused, setRefused] = useState<string>();
  const read = async (file: File | undefined) => {
    if (!file) return;
    setRefused(file.size > largestFile ? `${file.name} is larger than 8 MB` : undefined);
    if (file.size <= largestFile) draft.set({ ...draft.value, csv: await file.text() });
  };
  return (
    <>
      <TextArea
        id="csv"
        label="Table with a header"
        hint="Paste it here, drop a file on it, or choose a file. Columns are separated by commas, semicolons or tabs."
        error={error ?? refused}
        isCode
        rows={6}
        value={draft.value.csv}
        onChange={(csv) => draft.set({ ...draft.value, csv })}
        onFile={(file) => void read(file)}
      />
      <div class="field">
        <label for="csv-file">File</label>
        <input
          id="csv-file"
          type="file"
          accept=".csv,.tsv,.txt,text/csv"
          onChange={({ currentTarget }) => void read(currentTarget.files?.[0])}
        />
      </div>
    </>
  );
}

function ImportOptions({ draft }: { draft: KeptValue<Draft> }) {
  const { mode, keyField } = draft.value;
  return (
    <div class="columns">
      <Select
        id="import-mode"
        label="Entries that the table lacks"
        value={mode}
        onChange={(next) => draft.set({ ...draft.value, mode: next })}
        options={[
          ['upsert', 'stay'],
          ['replace', 'are removed'],
        ]}
      />
      <TextField
        id="import-key"
        label="Column that is the key"
        value={keyField}
        onChange={(next) => draft.set({ ...draft.value, keyField: next })}
      />
    </div>
  );
}

function Preview({ comparison, action, onApply }: { comparison: Comparison; action: Action; onApply(): void }) {
  const isSame = comparison.added + comparison.changed + comparison.removed === 0 && !comparison.reordered;
  return (
    <div class="note">
      <h3>Preview</h3>
      <Changes comparison={comparison} />
      {isSame || (
        <button type="button" class="button" aria-disabled={action.isBusy} onClick={onApply}>
          Import
        </button>
      )}
    </div>
  );
}
