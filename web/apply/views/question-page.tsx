// One page of questions. The button Continue checks the answers of this page. The list of steps links to the other
// pages.
import { useState } from 'preact/hooks';
import { ErrorSummary } from '../../shared/error-summary.tsx';
import { Elements } from '../controls/element.tsx';
import { idOf } from '../form-context.ts';
import type { FormPage } from '../model/elements.ts';
import { pathOf, pointerOf } from '../model/json.ts';
import { messageFor } from '../model/messages.ts';
import { fieldsOf, findingsFor } from '../model/questions.ts';
import { titled } from '../model/titles.ts';
import type { Message, Texts } from '../texts/texts.ts';
import { Page } from './frame.tsx';
import { LeaveButtons } from './leave-buttons.tsx';
import { SaveStateNote } from './save-state.tsx';
import type { SharedProps } from './shared-props.ts';
import { Steps, titleOf } from './steps.tsx';

interface QuestionProps extends SharedProps {
  /** Number of the page, counted from 1. */
  number: number;
  onLeft(): void;
}

export function QuestionPage(props: QuestionProps) {
  const { frame, form, draft, pages, place, number, go, announcement } = props;
  const { texts } = form;
  const [attempt, setAttempt] = useState(0);
  const page = pages[number - 1];
  if (!page) return null;
  const here = new Set(fieldsOf(page.elements, place, form.data).map(({ path }) => pointerOf(path)));
  const items = [...form.errors]
    .filter(([pointer]) => here.has(pointer))
    .map(([pointer, text]) => ({ text, target: idOf(pathOf(pointer)) }));
  const isOnly = pages.length === 1 && page.title === undefined;
  const follow = (event: Event) => {
    event.preventDefault();
    const problems = problemsOf(props, page);
    props.setErrors(problems);
    if (problems.size > 0) return setAttempt(attempt + 1);
    go(number < pages.length ? number + 1 : 'check');
  };
  return (
    <Page
      frame={frame}
      title={isOnly ? (frame.form ?? '') : titleOf(page, number, texts)}
      caption={texts.steps.step(number, pages.length + 1)}
      pageKey={`page ${number}`}
      hasErrors={items.length > 0}
      announcement={announcement}
    >
      <Steps pages={pages} current={number} go={go} texts={texts} />
      <ErrorSummary title={texts.problem} attempt={attempt} items={items} />
      <form noValidate onSubmit={follow}>
        <Elements key={number} elements={page.elements} place={place} />
        <div class="buttons">
          <button type="submit">{texts.continue}</button>
          {number > 1 && (
            <button type="button" class="quiet" onClick={() => go(number - 1)}>
              {texts.back}
            </button>
          )}
          <LeaveButtons key={number} work={draft.work} onLeft={props.onLeft} onDelete={() => go('delete')} />
        </div>
      </form>
      <SaveStateNote state={draft.state} retry={() => draft.work.retryNow()} />
    </Page>
  );
}

/**
 * Returns the error messages of a page, keyed by the pointer of the field, in the order of the fields. Leaves out what
 * other pages may answer, and fields whose file is being sent; the summary before submission reports both.
 */
function problemsOf({ form, place, validator }: SharedProps, page: FormPage): Map<string, Message> {
  const { data, uploads } = form;
  const beingSent = new Set(uploads.running.map(({ path }) => pointerOf(path)));
  const fields = fieldsOf(page.elements, place, data);
  const ofThisPage = (given: unknown) => validator(given).filter(({ concernsForm }) => !concernsForm);
  const found = findingsFor(data, fields, ofThisPage);
  const problems = fields.map((field): [string, Message][] => {
    const finding = found.find((one) => one.field === field)?.finding;
    const pointer = pointerOf(field.path);
    const inWords = (texts: Texts) => titled(field, fields, texts);
    if (form.unlisted?.has(pointer)) return [[pointer, (texts) => texts.errors.notListed(inWords(texts).label)]];
    return finding && !beingSent.has(pointer) ? [[pointer, (texts) => messageFor(finding, inWords(texts), texts)]] : [];
  });
  return new Map(problems.flat());
}
