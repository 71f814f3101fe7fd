// Adds, changes or deletes one entry of a register.
import { useEffect, useState } from 'preact/hooks';
import { ApiProblem } from '../api/problem.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAction } from '../elements/use-action.ts';
import { useKept } from '../session/kept.ts';
import {
  cellText,
  cellValue,
  type Entry,
  type EntryAddress,
  keyOf,
  putRequest,
  type Register,
  registerRequest,
  removeRequest,
} from './register.ts';

interface Props {
  register: string;
  columns: readonly string[];
  isText: boolean;
  keyField: string;
  /** The entry to edit; undefined for a new entry. */
  entry: Entry | undefined;
  /** Called with the text to announce; undefined if nothing was changed. */
  onClose(text: string | undefined): void;
}

const textColumn = 'Entry';

export function EntryForm({ register, columns, isText, keyField, entry, onClose }: Props) {
  const names = isText ? [textColumn] : columns.length > 0 ? columns : ['value', 'label'];
  const formerKey = entry === undefined ? undefined : keyOf(entry, keyField);
  const label = formerKey === undefined ? `A new entry of ${register}` : `Entry ${formerKey} of ${register}`;
  const draft = useKept(`entry ${register} ${formerKey ?? ''}`, label, textsOf(entry, names));
  const [error, setError] = useState<string>();
  const action = useAction();
  useEffect(() => document.getElementById('entry-0')?.focus(), []);
  const next = entryOf(draft.value, names, entry, isText);
  const key = keyOf(next, keyField);
  const address = { register, key: formerKey ?? key ?? '', keyField };
  const close = (text: string | undefined) => {
    draft.forget();
    onClose(text);
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const keyName = isText ? textColumn : keyField;
    setError(key ? undefined : `Enter the ${keyName.toLowerCase()}`);
    if (!key) return document.getElementById(`entry-${Math.max(0, names.indexOf(keyName))}`)?.focus();
    const isSaved = await action.run(async () => {
      if (formerKey === undefined) await requireFree(address);
      await send(putRequest(address, next));
    });
    if (isSaved) close(`The entry ${key} was saved.`);
  };
  const remove = async () => {
    if (await action.run(() => send(removeRequest(address)))) close(`The entry ${formerKey} was deleted.`);
  };
  return (
    <form class="action" onSubmit={(event) => void save(event)} noValidate aria-labelledby="entry-title">
      <h3 id="entry-title">{formerKey === undefined ? 'New entry' : `Entry ${formerKey}`}</h3>
      {names.map((name, index) => (
        <TextField
          key={name}
          id={`entry-${index}`}
          label={name}
          error={name === keyField || isText ? error : undefined}
          value={draft.value[name] ?? ''}
          onChange={(text) => draft.set({ ...draft.value, [name]: text })}
        />
      ))}
      <div class="actions">
        <button type="submit" class="button" aria-disabled={action.isBusy}>
          Save entry
        </button>
        {formerKey !== undefined && (
          <button type="button" class="button danger" aria-disabled={action.isBusy} onClick={() => void remove()}>
            Delete entry
          </button>
        )}
        <button type="button" class="button quiet" onClick={() => close(undefined)}>
          Cancel
        </button>
      </div>
      <Curl request={putRequest(address, next)} label="Save entry as a curl command" />
      {formerKey !== undefined && <Curl request={removeRequest(address)} label="Delete entry as a curl command" />}
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </form>
  );
}

/** Throws ApiProblem 409 if the register has an entry with this key, which a PUT would replace. */
async function requireFree({ register, key, keyField }: EntryAddress): Promise<void> {
  const { entries } = await send<Register>(registerRequest(register));
  if (entries.some((entry) => keyOf(entry, keyField) === key))
    throw new ApiProblem(409, { detail: 'An entry with this key exists. Edit that entry, or choose another key.' });
}

function textsOf(entry: Entry | undefined, names: readonly string[]): Record<string, string> {
  if (typeof entry === 'string') return { [textColumn]: entry };
  return Object.fromEntries(names.map((name) => [name, cellText(entry?.[name])]));
}

/** Returns the entry with the texts of the fields. Members of `former` that have no field are kept. */
function entryOf(
  texts: Record<string, string>,
  names: readonly string[],
  former: Entry | undefined,
  isText: boolean,
): Entry {
  if (isText) return texts[textColumn] ?? '';
  const before = typeof former === 'object' ? former : {};
  const members = names.map((name) => [name, cellValue(texts[name] ?? '', before[name])] as const);
  const merged = Object.entries({ ...before, ...Object.fromEntries(members) });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}
