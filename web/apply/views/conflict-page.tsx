// Shows, side by side, the answers that were changed both in this window and in another window. The person chooses
// between them.
import { useState } from 'preact/hooks';
import { ErrorSummary } from '../../shared/error-summary.tsx';
import { GroupedField } from '../../shared/field.tsx';
import { idOf, useForm } from '../form-context.ts';
import type { Difference } from '../model/conflict.ts';
import { type Field, nameOf } from '../model/fields.ts';
import { isEqual, pointerOf } from '../model/json.ts';
import { Answer, plainText } from './answers.tsx';
import { type FrameProps, Page } from './frame.tsx';

interface ConflictProps {
  frame: FrameProps;
  conflicts: readonly Difference[];
  fields: readonly Field[];
  onChosen(chosen: { difference: Difference; isMine: boolean }[]): void;
}

export function ConflictPage({ frame, conflicts, fields, onChosen }: ConflictProps) {
  const { texts } = useForm();
  const [chosen, setChosen] = useState<Record<string, boolean>>({});
  const [attempt, setAttempt] = useState(0);
  const keyOf = ({ path }: Difference) => pointerOf(path);
  const labelOf = ({ path }: Difference) => fields.find((field) => isEqual(field.path, path))?.label ?? nameOf(path);
  const open = attempt === 0 ? [] : conflicts.filter((difference) => chosen[keyOf(difference)] === undefined);
  const finish = (event: Event) => {
    event.preventDefault();
    const isComplete = conflicts.every((difference) => chosen[keyOf(difference)] !== undefined);
    if (!isComplete) return setAttempt(attempt + 1);
    onChosen(conflicts.map((difference) => ({ difference, isMine: chosen[keyOf(difference)] === true })));
  };
  const choose = (difference: Difference, isMine: boolean) => setChosen({ ...chosen, [keyOf(difference)]: isMine });
  return (
    <Page frame={frame} title={texts.conflict.title} pageKey="conflict" hasErrors={open.length > 0}>
      <ErrorSummary
        title={texts.problem}
        attempt={attempt}
        items={open.map((difference) => ({
          text: texts.conflict.choose(labelOf(difference)),
          target: idOf(difference.path),
        }))}
      />
      <p>{texts.conflict.why}</p>
      <form noValidate onSubmit={finish}>
        {conflicts.map((difference) => (
          <Versions
            key={keyOf(difference)}
            difference={difference}
            label={labelOf(difference)}
            field={fields.find((field) => isEqual(field.path, difference.path))}
            isOpen={open.includes(difference)}
            isMine={chosen[keyOf(difference)]}
            choose={(isMine) => choose(difference, isMine)}
          />
        ))}
        <div class="buttons">
          <button type="submit">{texts.conflict.button}</button>
        </div>
      </form>
    </Page>
  );
}

interface VersionsProps {
  difference: Difference;
  label: string;
  field: Field | undefined;
  isOpen: boolean;
  isMine: boolean | undefined;
  choose(isMine: boolean): void;
}

function Versions({ difference, label, field, isOpen, isMine, choose }: VersionsProps) {
  const { texts, files } = useForm();
  const id = idOf(difference.path);
  const error = isOpen ? texts.conflict.choose(label) : undefined;
  const versions = [
    { isFirst: true, name: texts.conflict.mine, value: difference.mine },
    { isFirst: false, name: texts.conflict.theirs, value: difference.theirs },
  ];
  return (
    <GroupedField id={id} label={label} error={error} errorPrefix={texts.problemAt}>
      <div class="row">
        {versions.map(({ isFirst, name, value }) => (
          <div class="item" key={name}>
            <div class="choice">
              <input
                type="radio"
                name={id}
                id={`${id}-${isFirst ? 'mine' : 'theirs'}`}
                checked={isMine === isFirst}
                onChange={() => choose(isFirst)}
              />
              <label for={`${id}-${isFirst ? 'mine' : 'theirs'}`}>
                {name}:{' '}
                <strong>
                  {value === undefined || value === null ? (
                    texts.check.none
                  ) : field ? (
                    <Answer field={field} given={value} />
                  ) : (
                    plainText(value, texts.check, files)
                  )}
                </strong>
              </label>
            </div>
          </div>
        ))}
      </div>
    </GroupedField>
  );
}
