// Adds, changes or deletes one entry of a register.
import { useEffect, useState } from 'preact/hooks';
import { isEqual } from '../../apply/model/json.ts';
import { ApiProblem } from '../api/problem.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { TextField } from '../elements/fields.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAction } from '../elements/use-action.ts';
import { useKept } from '../session/kept.ts';
import {
  cellText,
  cellValue,
  type Entry,
  type EntryAddress,
  formerOf,
  keyOf,
  putRequest,
  type Register,
  registerRequest,
  removeRequest,
} from './register.ts';

interface Props {
  register: string;
  columns: readonly string[];
  /** All entries of the register. They show which columns have numbers. */
  entries: readonly Entry[];
  isText: boolean;
  keyField: string;
  /** The entry to edit; undefined for a new entry. */
  entry: Entry | undefined;
  /** Called with the text to announce; undefined if nothing was changed. */
  onClose(text: string | undefined): void;
}

const textColumn = 'Entry';

/** The texts of the fields. `base` is the entry that they were made from; it serves to detect concurrent changes. */
interface KeptEntry {
  texts: Record<string, string>;
  base: Entry | undefined;
}

export function EntryForm(props: Props) {
  const { entry, isText, keyField, onClose } = props;
  const { names, draft, next, key, address, action, save, remove, refused } = useEntry(props);
  const [errors, setErrors] = useState<FieldError[]>([]);
  useEffect(() => document.getElementById('entry-0')?.focus(), []);
  const { texts, base } = draft.value;
  const title = entry === undefined ? 'New entry' : `Entry ${address.key}`;
  const close = (text: string | undefined) => {
    draft.forget();
    onClose(text);
  };
  const onSave = async (overwrites: boolean) => {
    const keyName = isText ? textColumn : keyField;
    const id = `entry-${Math.max(0, names.indexOf(keyName))}`;
    setErrors(key ? [] : [{ id, text: `Enter the ${keyName.toLowerCase()}` }]);
    if (key && (await save(overwrites))) close(`The entry ${key} was saved.`);
  };
  const onRemove = async (overwrites: boolean) => {
    if (await remove(overwrites)) close(`The entry ${address.key} was deleted.`);
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void onSave(false);
  };
  return (
    <form class="action" onSubmit={onSubmit} noValidate aria-labelledby="entry-title">
      <h3 id="entry-title">{title}</h3>
      <ErrorSummary errors={errors} />
      {draft.isKept && <p class="note">You have changes that are not saved.</p>}
      {names.map((name, index) => (
        <TextField
          key={name}
          id={`entry-${index}`}
          label={name}
          error={errorOf(errors, `entry-${index}`)}
          value={texts[name] ?? ''}
          onChange={(text) => draft.set({ texts: { ...texts, [name]: text }, base })}
        />
      ))}
      <div class="actions">
        <button type="submit" class="button" aria-disabled={action.isBusy}>
          Save entry
        </button>
        {entry !== undefined && (
          <button
            type="button"
            class="button danger"
            aria-disabled={action.isBusy}
            onClick={() => void onRemove(false)}
          >
            Delete entry
          </button>
        )}
        <button type="button" class="button quiet" onClick={() => close(undefined)}>
          Cancel
        </button>
      </div>
      <Curl request={putRequest(address, next)} label="Save entry as a curl command" />
      {entry !== undefined && <Curl request={removeRequest(address)} label="Delete entry as a curl command" />}
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      {action.problem?.status === 412 && (
        <button type="button" class="button danger" onClick={() => void (refused === 'save' ? onSave : onRemove)(true)}>
          {refused === 'save' ? 'Replace that change with mine' : 'Delete it anyway'}
        </button>
      )}
    </form>
  );
}

/** The entry in the fields, and the requests that save and delete it. */
function useEntry(props: Props) {
  const { register, columns, isText, keyField, entry } = props;
  const names = isText ? [textColumn] : columns.length > 0 ? columns : ['value', 'label'];
  const formerKey = entry === undefined ? undefined : keyOf(entry, keyField);
  const label = formerKey === undefined ? `A new entry of ${register}` : `Entry ${formerKey} of ${register}`;
  const initial: KeptEntry = { texts: textsOf(entry, names), base: entry };
  const draft = useKept(`entry-texts ${register} ${formerKey ?? ''}`, label, initial);
  const action = useAction();
  // The action that was refused because somebody else had changed the entry.
  const [refused, setRefused] = useState<'save' | 'delete'>('save');
  const { texts, base } = draft.value;
  const next = entryOf(props, texts, names, base);
  const key = keyOf(next, keyField);
  const address = { register, key: formerKey ?? key ?? '', keyField };
  /** Returns true if the entry was saved. With `overwrites`, saves even if somebody else has changed the entry. */
  const save = (overwrites: boolean) => {
    setRefused('save');
    return action.run(async () => {
      const present = await presentEntry(address);
      requireUnchanged(base, present, overwrites);
      await send(putRequest(address, entryOf(props, texts, names, present ?? base)));
    });
  };
  /** Returns true if the entry was deleted. With `overwrites`, deletes even if somebody else has changed the entry. */
  const remove = (overwrites: boolean) => {
    setRefused('delete');
    return action.run(async () => {
      requireUnchanged(base, await presentEntry(address), overwrites);
      await send(removeRequest(address));
    });
  };
  return { names, draft, next, key, address, action, save, remove, refused };
}

/** Returns the entry that the register has now under this key; undefined if there is none. */
async function presentEntry({ register, key, keyField }: EntryAddress): Promise<Entry | undefined> {
  const { entries } = await send<Register>(registerRequest(register));
  return entries.find((entry) => keyOf(entry, keyField) === key);
}

/**
 * Throws ApiProblem 409 if there is an entry although `base` is undefined, because saving a new entry would replace it.
 * Throws 412 if the entry was changed since its texts were put into the fields, unless `overwrites` is true.
 */
function requireUnchanged(base: Entry | undefined, present: Entry | undefined, overwrites: boolean): void {
  if (base === undefined && present !== undefined)
    throw new ApiProblem(409, { detail: 'An entry with this key exists. Edit that entry, or choose another key.' });
  if (base !== undefined && !overwrites && !isEqual(present, base))
    throw new ApiProblem(412, { detail: 'Somebody has changed or deleted this entry since you opened it.' });
}

function textsOf(entry: Entry | undefined, names: readonly string[]): Record<string, string> {
  if (typeof entry === 'string') return { [textColumn]: entry };
  return Object.fromEntries(names.map((name) => [name, cellText(entry?.[name])]));
}

/** Returns the entry with the texts of the fields. Members of `former` that have no field are kept. */
function entryOf(
  { entries, isText }: Pick<Props, 'entries' | 'isText'>,
  texts: Record<string, string>,
  names: readonly string[],
  former: Entry | undefined,
): Entry {
  if (isText) return texts[textColumn] ?? '';
  const before = typeof former === 'object' ? former : {};
  const members = names.map((name) => [name, cellValue(texts[name] ?? '', formerOf(before, entries, name))] as const);
  const merged = Object.entries({ ...before, ...Object.fromEntries(members) });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}
