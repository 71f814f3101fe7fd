// A control that uploads files. The browser sends a file to the intake application, which stores it in the file
// service.
import { focusOn } from '../../shared/error-summary.tsx';
import { described, type FieldParts, GroupedField } from '../../shared/field.tsx';
import { useForm } from '../form-context.ts';
import { urnsIn, withoutFile } from '../model/files.ts';
import { isObject, type Path } from '../model/json.ts';
import type { ControlProps } from './control-props.ts';

export function FileControl({ field, parts, value, set: _set }: ControlProps) {
  const { texts, files, allowsFiles, fileLimit, changeContent, announce } = useForm();
  const urns = urnsIn(value);
  const props = isObject(field.options.componentProps) ? field.options.componentProps : {};
  const remove = (urn: string, name: string) => {
    changeContent((content) => withoutFile(content, field.path, urn));
    announce(texts.files.removed(name));
    // The button that had the focus is gone.
    focusOn(`${parts.id}-input`);
  };
  const nameOf = (urn: string, index: number) =>
    Object.entries(files).find(([, other]) => other === urn)?.[0] ?? texts.files.file(index + 1);
  const limit =
    allowsFiles && fileLimit !== undefined ? texts.files.limit(megabytes(fileLimit, texts.locale)) : undefined;
  const hint = [parts.hint, limit].filter((line) => line !== undefined).join('\n') || undefined;
  return (
    <GroupedField {...parts} hint={hint}>
      {urns.length > 0 && (
        <ul>
          {urns.map((urn, index) => (
            <li key={urn}>
              {nameOf(urn, index)}{' '}
              <button type="button" class="link" onClick={() => remove(urn, nameOf(urn, index))}>
                {texts.files.remove(nameOf(urn, index))}
              </button>
            </li>
          ))}
        </ul>
      )}
      {allowsFiles ? (
        <UploadInput
          path={field.path}
          parts={{ ...parts, hint }}
          accept={props.accept}
          isMultiple={props.multiple === true}
        />
      ) : (
        <p class="notice">{texts.files.none}</p>
      )}
    </GroupedField>
  );
}

/** Rounds down, so that a file of the size that people read is never refused. */
const megabytes = (bytes: number, locale: string) => (Math.floor((bytes / 1_048_576) * 10) / 10).toLocaleString(locale);

interface UploadProps {
  path: Path;
  parts: FieldParts;
  accept: unknown;
  isMultiple: boolean;
}

function UploadInput({ path, parts, accept, isMultiple }: UploadProps) {
  const { texts, uploads } = useForm();
  const choose = (input: HTMLInputElement) => {
    for (const file of input.files ?? []) uploads.add({ file, path, isMultiple });
    input.value = '';
  };
  return (
    <>
      <label for={`${parts.id}-input`}>{isMultiple ? texts.files.chooseSeveral : texts.files.choose}</label>{' '}
      <input
        type="file"
        multiple={isMultiple}
        id={`${parts.id}-input`}
        {...described(parts)}
        accept={typeof accept === 'string' ? accept : undefined}
        onChange={(event) => choose(event.currentTarget)}
      />
      {uploads.of(path).map(({ id, file, failure }) => (
        <p key={id}>{texts.files[failure ?? 'uploading'](file.name)}</p>
      ))}
    </>
  );
}
