// Chooses the input for a field, and gives it the label, hint and error.
import { type FieldParts, GroupedField, LabelledField } from '../../shared/field.tsx';
import { idOf, useForm } from '../form-context.ts';
import type { Field } from '../model/fields.ts';
import { type Path, pointerOf, valueAt } from '../model/json.ts';
import { isRequiredNow } from '../model/required.ts';
import type { Texts } from '../texts/texts.ts';
import { ChoiceControl } from './choice-control.tsx';
import type { ControlProps } from './control-props.ts';
import { DateControl } from './date-control.tsx';
import { FileControl } from './file-control.tsx';
import { ListControl, ObjectControl } from './list-control.tsx';
import { NumberControl, TextControl } from './text-controls.tsx';

export function Control({ field }: { field: Field }) {
  const { data, errors, change, texts } = useForm();
  const error = errors.get(pointerOf(field.path));
  const saysOptional = !['checkbox', 'object', 'computed'].includes(field.kind) && !isRequiredNow(field, data);
  const parts: FieldParts = {
    id: idOf(field.path),
    label: saysOptional ? texts.optional(field.label) : field.label,
    hint: hintOf(field, texts),
    error,
    errorPrefix: texts.problemAt,
  };
  const set = (value: unknown, path: Path = field.path) => change(path, value);
  const props: ControlProps = { field, parts, value: valueAt(data, field.path), set };
  switch (field.kind) {
    case 'object':
      return <ObjectControl {...props} />;
    case 'list':
      return <ListControl {...props} />;
    case 'checkbox':
    case 'yes-no':
    case 'choice':
    case 'checkboxes':
      return <ChoiceControl {...props} />;
    case 'file':
      return <FileControl {...props} />;
    case 'date':
      return <DateControl {...props} />;
    case 'computed':
      return (
        <GroupedField {...parts}>
          <p>{props.value === undefined ? texts.fields.computed : String(props.value)}</p>
        </GroupedField>
      );
    default:
      return (
        <LabelledField {...parts}>
          {field.kind === 'number' || field.kind === 'integer' ? (
            <NumberControl {...props} />
          ) : (
            <TextControl {...props} />
          )}
        </LabelledField>
      );
  }
}

function hintOf({ hint, kind, place }: Field, { fields }: Texts): string | undefined {
  const { maxLength } = place.schema;
  const limit = kind === 'textarea' && typeof maxLength === 'number' ? fields.atMost(maxLength) : undefined;
  const lines = [hint, limit].filter((line) => line !== undefined);
  return lines.length > 0 ? lines.join('\n') : undefined;
}
