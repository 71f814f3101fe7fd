// A question for files. The browser sends them to the intake application, which stores them in the file service.
import { useState } from 'preact/hooks';
import { described, type FieldParts, GroupedField } from '../../shared/field.tsx';
import { ApiProblem } from '../api.ts';
import { useForm } from '../form-context.ts';
import { isObject } from '../model/json.ts';
import type { ControlProps } from './control-props.ts';

export function FileControl({ field, parts, value, set: _set }: ControlProps) {
  const { texts, files, allowsFiles, change, announce } = useForm();
  const urns = typeof value === 'string' ? value.split(';').filter(Boolean) : [];
  const props = isObject(field.options.componentProps) ? field.options.componentProps : {};
  const remove = (urn: string) => {
    const rest = urns.filter((other) => other !== urn);
    const kept = Object.fromEntries(Object.entries(files).filter(([, other]) => other !== urn));
    change(field.path, rest.length > 0 ? rest.join(';') : undefined, kept);
  };
  const add = (urn: string, name: string) => {
    const kept = props.multiple === true ? urns : [];
    change(field.path, [...kept, urn].join(';'), { ...files, [freeName(name, files)]: urn });
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
        <Upload parts={parts} accept={props.accept} add={add} />
      ) : (
        <p class="notice">{texts.files.none}</p>
      )}
    </GroupedField>
  );
}

/** Returns a name that no other file has: files may have the same name, but the members of an object may not. */
function freeName(name: string, files: Record<string, string>): string {
  let free = name;
  for (let number = 2; Object.hasOwn(files, free); number += 1) free = `${name} (${number})`;
  return free;
}

function Upload({ parts, accept, add }: { parts: FieldParts; accept: unknown; add(urn: string, name: string): void }) {
  const { api, formId, texts } = useForm();
  const [state, setState] = useState('');
  const upload = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    if (!file) return;
    setState(texts.files.uploading(file.name));
    try {
      const { urn } = await api.upload(formId, file);
      add(urn, file.name);
      setState('');
    } catch (error) {
      const isTooLarge = error instanceof ApiProblem && error.status === 413;
      setState(isTooLarge ? texts.files.tooLarge(file.name) : texts.files.failed(file.name));
    }
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
        onChange={(event) => void upload(event.currentTarget)}
      />
      <p role="status">{state}</p>
    </>
  );
}
