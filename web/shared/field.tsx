// A form control with its label, hint and error, and a group of controls with its legend. Hint and error are read out
// with the control.
import type { ComponentChildren } from 'preact';

export interface FieldParts {
  /** Id of the control or the group. */
  id: string;
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  /** Text that is read out before the error, such as “Error:”. */
  errorPrefix: string;
}

/** Returns the attributes that connect a control with its hint and error. */
export function described({ id, hint, error }: Pick<FieldParts, 'id' | 'hint' | 'error'>) {
  const ids = [hint !== undefined && `${id}-hint`, error !== undefined && `${id}-error`].filter(Boolean);
  return {
    'aria-describedby': ids.length > 0 ? ids.join(' ') : undefined,
    'aria-invalid': error === undefined ? undefined : true,
  };
}

export function LabelledField({ children, ...parts }: FieldParts & { children: ComponentChildren }) {
  return (
    <div class={parts.error === undefined ? 'field' : 'field has-error'}>
      <label for={parts.id}>{parts.label}</label>
      <HintAndError {...parts} />
      {children}
    </div>
  );
}

export function GroupedField({ children, ...parts }: FieldParts & { children: ComponentChildren }) {
  const { 'aria-describedby': description } = described(parts);
  return (
    <fieldset
      class={parts.error === undefined ? 'field' : 'field has-error'}
      id={parts.id}
      aria-describedby={description}
    >
      <legend>{parts.label}</legend>
      <HintAndError {...parts} />
      {children}
    </fieldset>
  );
}

export function HintAndError({ id, hint, error, errorPrefix }: FieldParts) {
  return (
    <>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p class="error" id={`${id}-error`}>
          <span class="visually-hidden">{errorPrefix}</span> {error}
        </p>
      )}
    </>
  );
}
