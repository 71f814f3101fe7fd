// A text area for JSON, with line numbers and marks at lines that have problems. It is an ordinary control: assistive
// technology, zoom, spoken input and the browser's search and undo work as in any other control (decision 0057).
import { useEffect, useRef } from 'preact/hooks';
import { useErrorInTitle } from '../../elements/page.tsx';
import type { EditorProblem } from './definition-draft.ts';
import { lineOf } from './json-places.ts';

interface Props {
  id: string;
  label: string;
  hint: string;
  value: string;
  problems: readonly EditorProblem[];
  onChange(value: string): void;
}

export function CodeArea({ id, label, hint, value, problems, onChange }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const faulty = new Set(problems.map(({ offset }) => lineOf(value, offset ?? 0)));
  const count = value.split('\n').length;
  const follow = () => {
    if (area.current && numbers.current) numbers.current.scrollTop = area.current.scrollTop;
  };
  useEffect(follow, [value]);
  const isInvalid = problems.some(({ severity }) => severity === 'error');
  useErrorInTitle(isInvalid);
  return (
    <div class={isInvalid ? 'field invalid' : 'field'}>
      <label for={id}>{label}</label>
      <p class="hint" id={`${id}-hint`}>
        {hint}
      </p>
      <div id={`${id}-problems`}>
        {problems.map(({ text, severity }) => (
          <p class={severity === 'error' ? 'error-message' : 'warning-message'} key={text}>
            {severity === 'error' ? 'Error: ' : 'Warning: '}
            {text}
          </p>
        ))}
      </div>
      <div class="code-area">
        <pre ref={numbers} aria-hidden="true">
          {Array.from({ length: count }, (_, index) => (
            <span key={index} class={faulty.has(index + 1) ? 'line faulty' : 'line'}>
              {index + 1}
              {'\n'}
            </span>
          ))}
        </pre>
        <textarea
          ref={area}
          id={id}
          class="code"
          rows={Math.min(24, Math.max(6, count + 1))}
          wrap="off"
          spellcheck={false}
          autocapitalize="off"
          value={value}
          aria-describedby={`${id}-hint ${id}-problems`}
          aria-invalid={isInvalid}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
          onScroll={follow}
        />
      </div>
    </div>
  );
}

/** Moves the focus to a control; in a code area also to the line of the problem. */
export function goTo({ control, offset }: EditorProblem): void {
  const element = document.getElementById(`edit-${control}`);
  element?.closest('details')?.setAttribute('open', '');
  element?.focus();
  if (!(element instanceof HTMLTextAreaElement) || offset === undefined) return;
  const end = element.value.indexOf('\n', offset);
  element.setSelectionRange(offset, end === -1 ? element.value.length : end);
  const lineHeight = element.scrollHeight / element.value.split('\n').length;
  element.scrollTop = Math.max(0, (lineOf(element.value, offset) - 3) * lineHeight);
}
