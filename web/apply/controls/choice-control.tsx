// Shows choices as checkboxes, radio buttons or a menu. A long list gets an input that searches.
import { useEffect, useRef, useState } from 'preact/hooks';
import { focusOn } from '../../shared/error-summary.tsx';
import { described, GroupedField, HintAndError, LabelledField } from '../../shared/field.tsx';
import { useForm } from '../form-context.ts';
import { autofillOf } from '../model/autofill.ts';
import { yesNoChoices } from '../model/fields.ts';
import { isEqual, pointerOf } from '../model/json.ts';
import type { Choice } from '../model/registers.ts';
import { found, mostFound } from '../model/search.ts';
import { useChoices } from '../registers.ts';
import type { Language } from '../texts/texts.ts';
import { Combobox } from './combobox.tsx';
import type { ChoiceProps, ControlProps } from './control-props.ts';

/** Maximum number of choices in a menu. A longer list gets an input that searches. */
const longestMenu = 25;

export const labelOf = ({ label, labelFr }: Choice, language: Language) =>
  language === 'fr' ? (labelFr ?? label) : label;

export function ChoiceControl(props: ControlProps) {
  const { field } = props;
  if (field.kind === 'checkbox') return <SingleBox {...props} />;
  if (field.kind === 'yes-no') return <YesNo {...props} />;
  return <LoadedChoice {...props} />;
}

/** A box that must be ticked has no answer until then. Any other unticked box is `false`, for rules that compare it. */
function SingleBox({ field, parts, value, set }: ControlProps) {
  const unticked = field.place.schema.const === true ? undefined : false;
  return (
    <div class={parts.error === undefined ? 'field' : 'field has-error'}>
      <HintAndError {...parts} />
      <div class="choice">
        <input
          type="checkbox"
          id={parts.id}
          {...described(parts)}
          checked={value === true}
          onChange={(event) => set(event.currentTarget.checked ? true : unticked)}
        />
        <label for={parts.id}>{parts.label}</label>
      </div>
    </div>
  );
}

function YesNo(props: ControlProps) {
  const { texts } = useForm();
  return <RadioButtons {...props} choices={yesNoChoices(props.field, texts.fields)} />;
}

function LoadedChoice(props: ControlProps) {
  const { registers, texts, language } = useForm();
  const { field, parts, value, set } = props;
  const { choices, isFailed, isLoading, retry } = useChoices(field, registers);
  const isRetried = useRef(false);
  useEffect(() => {
    // The button that was pressed is gone.
    if (choices && isRetried.current && document.activeElement === document.body) focusOn(parts.id);
  }, [choices]);
  if (isFailed) {
    const again = () => {
      isRetried.current = true;
      if (!isLoading) retry();
    };
    return (
      <GroupedField {...parts}>
        <p role="status">{isLoading ? texts.loading : texts.fields.unavailable}</p>
        <button type="button" class="link" aria-disabled={isLoading} onClick={again}>
          {texts.saved.retry}
        </button>
      </GroupedField>
    );
  }
  const isGroup = field.kind === 'checkboxes' || field.asRadio;
  if (choices === undefined && isGroup)
    return (
      <GroupedField {...parts}>
        <p>{texts.loading}</p>
      </GroupedField>
    );
  const named = (choices ?? []).map((choice) => ({ ...choice, label: labelOf(choice, language) }));
  const options = withPresent(named, value, field.kind === 'checkboxes');
  if (field.kind === 'checkboxes') return <CheckBoxes parts={parts} choices={options} value={value} set={set} />;
  if (field.asRadio && options.length <= mostFound) return <RadioButtons {...props} choices={options} />;
  const autofill = autofillOf(field);
  if (options.length > longestMenu)
    return (
      <LabelledField {...parts} hint={parts.hint ?? texts.fields.search}>
        <Combobox pointer={pointerOf(field.path)} {...{ parts, value, set, autofill }} choices={options} />
      </LabelledField>
    );
  const menu = { parts, value, set, autofill, isLoading: choices === undefined };
  return <Menu {...menu} choices={options} />;
}

/** Adds a stored value that is no longer among the choices, so that it is still shown. */
function withPresent(choices: Choice[], value: unknown, isList: boolean): Choice[] {
  const present = isList ? (Array.isArray(value) ? value : []) : value === undefined || value === null ? [] : [value];
  const missing = present.filter((one) => !choices.some((choice) => isEqual(choice.value, one)));
  return [...choices, ...missing.map((one) => ({ value: one, label: String(one) }))];
}

interface MenuProps extends ChoiceProps {
  autofill: string | undefined;
  isLoading: boolean;
}

function Menu({ parts, choices, value, set, autofill, isLoading }: MenuProps) {
  const { texts } = useForm();
  const selected = choices.findIndex((choice) => isEqual(choice.value, value));
  return (
    <LabelledField {...parts}>
      <select
        id={parts.id}
        {...described(parts)}
        autocomplete={autofill}
        value={String(selected)}
        // Disabled until the choices are loaded, because before that, a person could only remove the answer.
        disabled={isLoading}
        onChange={(event) => set(choices[Number(event.currentTarget.value)]?.value)}
      >
        <option value="-1">{isLoading ? texts.loading : texts.fields.choose}</option>
        {choices.map((choice, index) => (
          <option key={String(choice.value)} value={String(index)} selected={index === selected}>
            {choice.label}
          </option>
        ))}
      </select>
    </LabelledField>
  );
}

function RadioButtons({ field, parts, choices, value, set }: ChoiceProps & ControlProps) {
  const { texts } = useForm();
  const hasAnswer = value !== undefined && value !== null;
  const clear = () => {
    set(undefined);
    // The button that was pressed is gone.
    focusOn(parts.id);
  };
  return (
    <GroupedField {...parts}>
      {choices.map((choice, index) => (
        <div class="choice" key={String(choice.value)}>
          <input
            type="radio"
            name={parts.id}
            id={`${parts.id}-${index}`}
            checked={isEqual(choice.value, value)}
            onChange={() => set(choice.value)}
          />
          <label for={`${parts.id}-${index}`}>{choice.label}</label>
        </div>
      ))}
      {hasAnswer && !field.isRequired && (
        <button type="button" class="link" onClick={clear}>
          {texts.fields.clear}
          <span class="visually-hidden">{texts.check.changeOf(field.label)}</span>
        </button>
      )}
    </GroupedField>
  );
}

/** If there are too many choices for the browser, shows those that are chosen and those that are found. */
function CheckBoxes({ parts, choices, value, set }: ChoiceProps) {
  const [text, setText] = useState('');
  const chosen: unknown[] = Array.isArray(value) ? value : [];
  const isLong = choices.length > mostFound;
  const hits = new Set(isLong ? found(choices, text) : choices);
  const isChosen = (choice: Choice) => chosen.some((one) => isEqual(one, choice.value));
  const toggle = (choice: Choice, isTicked: boolean) => {
    const others = chosen.filter((one) => !isEqual(one, choice.value));
    const next = isTicked ? [...others, choice.value] : others;
    set(next.length > 0 ? next : undefined);
  };
  return (
    <GroupedField {...parts}>
      {isLong && <Search id={`${parts.id}-search`} text={text} setText={setText} count={hits.size} />}
      {choices.map(
        (choice, index) =>
          (hits.has(choice) || isChosen(choice)) && (
            <div class="choice" key={String(choice.value)}>
              <input
                type="checkbox"
                id={`${parts.id}-${index}`}
                checked={isChosen(choice)}
                onChange={(event) => toggle(choice, event.currentTarget.checked)}
              />
              <label for={`${parts.id}-${index}`}>{choice.label}</label>
            </div>
          ),
      )}
    </GroupedField>
  );
}

interface SearchProps {
  id: string;
  text: string;
  setText(text: string): void;
  /** Number of choices that were found. */
  count: number;
}

function Search({ id, text, setText, count }: SearchProps) {
  const { fields } = useForm().texts;
  return (
    <>
      <label for={id}>{fields.searchHere}</label>
      <input
        id={id}
        type="text"
        autocomplete="off"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        // Enter would submit the page.
        onKeyDown={(event) => event.key === 'Enter' && event.preventDefault()}
      />
      <p class="visually-hidden" role="status">
        {text !== '' && (count === 0 ? fields.noneFound : fields.found(count))}
      </p>
    </>
  );
}
