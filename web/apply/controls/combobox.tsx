// An input that searches a long list: the editable combobox of the ARIA Authoring Practices, with a listbox. Only
// values of the list are stored.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { described } from '../../shared/field.tsx';
import { useForm } from '../form-context.ts';
import { isEqual } from '../model/json.ts';
import type { Choice } from '../model/registers.ts';
import { found } from '../model/search.ts';
import type { ChoiceProps } from './control-props.ts';

interface ComboboxProps extends ChoiceProps {
  /** The pointer of the field. */
  pointer: string;
  /** The attribute `autocomplete`. If undefined, browsers offer nothing, because their list would cover this one. */
  autofill?: string | undefined;
}

export function Combobox({ pointer, autofill = 'off', parts, choices, value, set }: ComboboxProps) {
  const { texts, unlisted } = useForm();
  const box = useBox(choices, value, set, unlisted?.get(pointer));
  const hasMessage = useUnlisted(pointer, box) && parts.error === undefined;
  const { shown, active, isOpen } = box;
  const optionId = (index: number) => `${parts.id}-option-${index}`;
  const hasList = isOpen && shown.length > 0;
  const { 'aria-describedby': description, 'aria-invalid': isInvalid } = described({
    ...parts,
    hint: parts.hint ?? texts.fields.search,
  });
  const problemId = `${parts.id}-not-listed`;
  return (
    <div class="combobox">
      {hasMessage && (
        <p class="error" id={problemId}>
          <span class="visually-hidden">{parts.errorPrefix}</span> {texts.fields.notListed}
        </p>
      )}
      <input
        id={parts.id}
        aria-describedby={[hasMessage && problemId, description].filter(Boolean).join(' ')}
        aria-invalid={hasMessage || isInvalid}
        type="text"
        role="combobox"
        autocomplete={autofill}
        aria-autocomplete="list"
        aria-expanded={hasList}
        aria-controls={`${parts.id}-list`}
        aria-activedescendant={hasList && active >= 0 ? optionId(active) : undefined}
        value={box.text}
        onInput={(event) => box.type(event.currentTarget.value)}
        onClick={box.open}
        onBlur={box.close}
        onKeyDown={box.onKeyDown}
      />
      <div
        class="options"
        id={`${parts.id}-list`}
        role="listbox"
        aria-label={parts.label}
        hidden={!hasList}
        ref={box.list}
      >
        {hasList &&
          shown.map((choice, index) => (
            <Option
              key={String(choice.value)}
              id={optionId(index)}
              isActive={index === active}
              label={choice.label}
              choose={() => box.choose(choice)}
            />
          ))}
      </div>
      <p class="visually-hidden" role="status">
        {isOpen && box.isTyping && (shown.length === 0 ? texts.fields.noneFound : texts.fields.found(shown.length))}
      </p>
    </div>
  );
}

/** Milliseconds. A message that appeared at once would move the button that a mouse is pressing. */
const messageDelay = 300;

/**
 * Keeps a text that is not in the list, so that the input has it again when the person comes back to the page. Returns
 * true if the input should say that the text is no answer: a moment after the list was closed.
 */
function useUnlisted(pointer: string, { isOpen, isNotListed, text }: ReturnType<typeof useBox>): boolean {
  const { unlisted } = useForm();
  const [isShown, setShown] = useState(false);
  // `useEffect` would run only after the page is painted, and Enter may be pressed before that.
  useLayoutEffect(() => {
    if (isNotListed) unlisted?.set(pointer, text);
    else unlisted?.delete(pointer);
  }, [pointer, isNotListed, text]);
  useEffect(() => {
    const timer = setTimeout(() => setShown(isNotListed && !isOpen), messageDelay);
    return () => clearTimeout(timer);
  }, [isNotListed, isOpen]);
  return isShown && isNotListed && !isOpen;
}

function useBox(choices: readonly Choice[], value: unknown, set: (value: unknown) => void, former?: string) {
  const [lastTyped, setTyped] = useState(former);
  const answerOf = (text: string) =>
    choices.find(({ label }) => label.toLowerCase() === text.trim().toLowerCase())?.value;
  // True if the stored answer is still the one that was typed. The answer can also change without typing, for example
  // by a merge with another window. In a list, a missing answer is null.
  const isOfAnswer = lastTyped !== undefined && isEqual(answerOf(lastTyped) ?? null, value ?? null);
  /** The text that was typed; undefined while the chosen answer is shown. */
  const typed = isOfAnswer ? lastTyped : undefined;
  const [isOpen, setOpen] = useState(false);
  /** Index of the highlighted option. It is -1 after typing: no option is highlighted until an arrow key is pressed. */
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLDivElement>(null);
  const shown = found(choices, typed);
  const choose = (choice: Choice | undefined) => {
    setOpen(false);
    setTyped(undefined);
    if (choice) set(choice.value);
  };
  const type = (text: string) => {
    setTyped(text);
    setOpen(true);
    setActive(-1);
    set(answerOf(text));
  };
  const move = (index: number) => {
    setOpen(true);
    setActive(index);
    list.current?.children[index]?.scrollIntoView({ block: 'nearest' });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = shown.length - 1;
    if (event.key === 'ArrowDown') move(isOpen ? Math.min(active + 1, last) : 0);
    else if (event.key === 'ArrowUp') move(isOpen ? Math.max(active - 1, 0) : last);
    else if (event.key === 'Enter' && isOpen && active >= 0) choose(shown[active]);
    else if (event.key === 'Escape' && isOpen) setOpen(false);
    else return;
    event.preventDefault();
  };
  return {
    ...{ shown, active, isOpen, list, choose, type, onKeyDown },
    text: typed ?? choices.find((choice) => isEqual(choice.value, value))?.label ?? '',
    isTyping: typed !== undefined,
    /** True if the input has a text that is not an answer. No value is stored. */
    isNotListed: typed !== undefined && typed.trim() !== '' && answerOf(typed) === undefined,
    open: () => setOpen(true),
    close: () => setOpen(false),
  };
}

interface OptionProps {
  id: string;
  isActive: boolean;
  label: string;
  choose(): void;
}

/** An option of the list. The input keeps the focus, and names the active option. */
function Option({ id, isActive, label, choose }: OptionProps) {
  // With the default action of a mouse click, the input would lose the focus before the choice is made.
  const onMouseDown = (event: Event) => {
    event.preventDefault();
    choose();
  };
  return (
    <div id={id} role="option" tabIndex={-1} aria-selected={isActive} onMouseDown={onMouseDown}>
      {label}
    </div>
  );
}
