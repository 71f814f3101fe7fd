// Labelled inputs with hint and error, as in GOV.UK's patterns: the error is shown before the input, and hint and error
// describe the input.
import type { ComponentChildren } from 'preact';
import { useErrorInTitle } from './page.tsx';

interface FieldProps {
  id: string;
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
}

interface InputProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  type?: 'text' | 'search' | 'email' | 'password' | 'date' | 'number';
  autocomplete?: string;
  spellcheck?: boolean;
  isCode?: boolean;
}

function Field({ id, label, hint, error, children }: FieldProps & { children: ComponentChildren }) {
  useErrorInTitle(error !== undefined);
  return (
    <div class={error ? 'field invalid' : 'field'}>
      <label for={id}>{label}</label>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="error-message" id={`${id}-error`}>
          <span class="hidden">Error: </span>
          {error}
        </p>
      )}
      {children}
    </div>
  );
}

function describe({ id, hint, error }: FieldProps) {
  const ids = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return { id, 'aria-invalid': error !== undefined, ...(ids !== '' && { 'aria-describedby': ids }) };
}

export function TextField(props: InputProps) {
  const { value, onChange, type = 'text', autocomplete = 'off', spellcheck = false, isCode = false } = props;
  return (
    <Field {...props}>
      <input
        {...describe(props)}
        // Preact's types accept only a constant as the type of an input.
        type={type as 'text'}
        value={value}
        class={isCode ? 'code' : undefined}
        autocomplete={autocomplete}
        spellcheck={spellcheck}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
    </Field>
  );
}

interface TextAreaProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  rows?: number;
  isCode?: boolean;
  /** Called with a file that is dropped on the field. */
  onFile?(file: File | undefined): void;
}

export function TextArea(props: TextAreaProps) {
  const { value, onChange, onFile, rows = 4, isCode = false } = props;
  return (
    <Field {...props}>
      <textarea
        {...describe(props)}
        rows={rows}
        value={value}
        class={isCode ? 'code' : undefined}
        spellcheck={!isCode}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
        {...(onFile && acceptFile(onFile))}
      />
    </Field>
  );
}

/** Handles a dropped file. Without these handlers, the browser would open the file. */
const acceptFile = (onFile: (file: File | undefined) => void) => ({
  onDragOver: (event: DragEvent) => event.preventDefault(),
  onDrop: (event: DragEvent) => {
    event.preventDefault();
    onFile(event.dataTransfer?.files[0]);
  },
});

interface SelectProps extends FieldProps {
  value: string;
  onChange(value: string): void;
  options: readonly (readonly [value: string, text: string])[];
}

export function Select(props: SelectProps) {
  const { value, onChange, options } = props;
  return (
    <Field {...props}>
      <select {...describe(props)} value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface CheckboxProps {
  id: string;
  label: string;
  checked: boolean;
  onChange(checked: boolean): void;
}

export function Checkbox({ id, label, checked, onChange }: CheckboxProps) {
  return (
    <div class="checkbox">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <label for={id}>{label}</label>
    </div>
  );
}
