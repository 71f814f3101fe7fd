// A control that uploads files. The browser sends a file to the intake application, which stores it in the file
// service.
import { useRef, useState } from 'preact/hooks';
import { described, type FieldParts, GroupedField } from '../../shared/field.tsx';
import { ApiProblem } from '../api.ts';
import { type Upload, useForm } from '../form-context.ts';
import { isObject, type Path } from '../model/json.ts';
import type { ControlProps } from './control-props.ts';

export function FileControl({ field, parts, value, set: _set }: ControlProps) {
  const { texts, files, allowsFiles, changeFiles, announce } = useForm();
  const urns = urnsIn(value);
  const props = isObject(field.options.componentProps) ? field.options.componentProps : {};
  const remove = (urn: string) =>
    changeFiles(field.path, (present, names) => ({
      value: joined(urnsIn(present).filter((other) => other !== urn)),
      files: Object.fromEntries(Object.entries(names).filter(([, other]) => other !== urn)),
    }));
  const add = (path: Path, urn: string, name: string) => {
    changeFiles(path, (present, names) => ({
      value: joined([...(props.multiple === true ? urnsIn(present) : []), urn]),
      files: { ...names, [freeName(name, names)]: urn },
    }));
    announce(texts.files.uploaded(name));
  };
  const nameOf = (urn: string, index: number) =>
    Object.entries(files).find(([, other]) => other === urn)?.[0] ?? texts.files.file(index + 1);
  return (
    <GroupedField {...parts}>
      {urns.length > 0 && (
        <ul>
          {urns.map((urn, index) => (
            <li key={urn}>
              {nameOf(urn, index)}{' '}
              <button type="button" class="link" onClick={() => remove(urn)}>
                {texts.files.remove(nameOf(urn, index))}
              </button>
            </li>
          ))}
        </ul>
      )}
      {allowsFiles ? (
        <UploadInput path={field.path} parts={parts} accept={props.accept} add={add} />
      ) : (
        <p class="notice">{texts.files.none}</p>
      )}
    </GroupedField>
  );
}

/** The form data stores the URNs of a question's files as one text, separated by semicolons. */
const urnsIn = (value: unknown): string[] => (typeof value === 'string' ? value.split(';').filter(Boolean) : []);
const joined = (urns: readonly string[]): string | undefined => (urns.length > 0 ? urns.join(';') : undefined);

/**
 * Returns a unique name for a file, because `files` is keyed by name, and two uploaded files may have the same name.
 */
function freeName(name: string, files: Record<string, string>): string {
  let free = name;
  for (let number = 2; Object.hasOwn(files, free); number += 1) free = `${name} (${number})`;
  return free;
}

interface UploadProps {
  path: Path;
  parts: FieldParts;
  accept: unknown;
  add(path: Path, urn: string, name: string): void;
}

function UploadInput({ path, parts, accept, add }: UploadProps) {
  const { api, formId, texts, uploads } = useForm();
  const [waiting, setWaiting] = useState<readonly File[]>([]);
  const [failures, setFailures] = useState<readonly string[]>([]);
  /** The files of a question are sent one after the other, so that the file that was chosen last is added last. */
  const queue = useRef(Promise.resolve());
  const send = async (file: File, upload: Upload) => {
    try {
      const { urn } = await api.upload(formId, file);
      if (upload.path) add(upload.path, urn, file.name);
    } catch (error) {
      const isTooLarge = error instanceof ApiProblem && error.status === 413;
      const failure = isTooLarge ? texts.files.tooLarge(file.name) : texts.files.failed(file.name);
      setFailures((others) => [...others, failure]);
    }
    uploads.delete(upload);
    setWaiting((files) => files.filter((other) => other !== file));
  };
  const choose = (input: HTMLInputElement) => {
    const file = input.files?.[0];
    if (!file) return;
    const upload: Upload = { path };
    uploads.add(upload);
    setFailures([]);
    setWaiting((files) => [...files, file]);
    queue.current = queue.current.then(() => send(file, upload));
    input.value = '';
  };
  return (
    <>
      <label for={`${parts.id}-input`}>{texts.files.choose}</label>{' '}
      <input
        type="file"
        id={`${parts.id}-input`}
        {...described(parts)}
        accept={typeof accept === 'string' ? accept : undefined}
        onChange={(event) => choose(event.currentTarget)}
      />
      <div role="status">
        {[...failures, ...waiting.map(({ name }) => texts.files.uploading(name))].map((line, index) => (
          <p key={`${index} ${line}`}>{line}</p>
        ))}
      </div>
    </>
  );
}
