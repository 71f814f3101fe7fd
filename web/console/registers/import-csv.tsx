// Imports a CSV table that was pasted, dropped or chosen as a file. Shows the changes before they are made.
import { useState } from 'preact/hooks';
import { isEqual } from '../../apply/model/json.ts';
import { ApiProblem } from '../api/problem.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { Select, TextArea, TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { type Action, useAction } from '../elements/use-action.ts';
import { type KeptValue, useKept } from '../session/kept.ts';
import { Changes } from './changes.tsx';
import { type Comparison, columnsOf, csvTextOf, importRequest, type Register } from './register.ts';

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
  const [preview, setPreview] = useState<{ of: Draft; comparison: Comparison }>();
  const [errors, setErrors] = useState<FieldError[]>([]);
  const action = useAction();
  const { csv, ...options } = draft.value;
  const dryRun = () => send<Comparison>(importRequest(register.name, csv, { ...options, dryRun: true }));
  const ask = async (event: Event) => {
    event.preventDefault();
    const isEmpty = csv.trim() === '';
    setErrors(isEmpty ? [{ id: 'csv', text: 'Paste a table, or choose a file' }] : []);
    if (!isEmpty) await action.run(async () => setPreview({ of: draft.value, comparison: await dryRun() }));
  };
  const apply = (previewed: Comparison) =>
    action.run(async () => {
      // Somebody else may have changed the register since the preview. The import must make only the changes shown.
      const comparison = await dryRun();
      setPreview({ of: draft.value, comparison });
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
        <ErrorSummary errors={errors} />
        <TableField draft={draft} errors={errors} onErrors={setErrors} />
        <ImportOptions draft={draft} />
        <button type="submit" class="button quiet" aria-disabled={action.isBusy}>
          Preview the changes
        </button>
      </form>
      {preview?.of === draft.value && (
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

interface TableProps {
  draft: KeptValue<Draft>;
  errors: readonly FieldError[];
  onErrors(errors: FieldError[]): void;
}

function TableField({ draft, errors, onErrors }: TableProps) {
  const read = async (file: File | undefined) => {
    if (!file) return;
    const isTooLarge = file.size > largestFile;
    onErrors(isTooLarge ? [{ id: 'csv', text: `${file.name} is larger than 8 MB` }] : []);
    if (!isTooLarge) draft.set({ ...draft.value, csv: await csvTextOf(file) });
  };
  return (
    <>
      <TextArea
        id="csv"
        label="Table with a header"
        hint="Paste it here, drop a file on it, or choose a file. Columns are separated by commas, semicolons or tabs."
        error={errorOf(errors, 'csv')}
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
          onChange={({ currentTarget }) => {
            void read(currentTarget.files?.[0]);
            // Otherwise, a corrected file with the same name would cause no event.
            currentTarget.value = '';
          }}
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
