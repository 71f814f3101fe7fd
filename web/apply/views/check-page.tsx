// The summary before submission. Lists every problem of the form, including problems that only the service finds.
import { useRef, useState } from 'preact/hooks';
import { ErrorSummary, focusOn, type SummaryItem } from '../../shared/error-summary.tsx';
import { asProblem, endOf, type Submission } from '../api.ts';
import { idOf } from '../form-context.ts';
import type { Field } from '../model/fields.ts';
import { type Path, pointerOf, valueAt } from '../model/json.ts';
import { fieldsOf, findingsFor, itemsOf } from '../model/questions.ts';
import { summarized, withTitles } from '../model/titles.ts';
import { newId } from '../new-id.ts';
import type { EndReason } from '../saving/saver.ts';
import { useIsShown } from '../use-is-shown.ts';
import { useSlow } from '../use-slow.ts';
import { Answers } from './answers.tsx';
import { Page } from './frame.tsx';
import { HiddenAnswers } from './hidden-answers.tsx';
import { LeaveButtons } from './leave-buttons.tsx';
import { problemText } from './problem-text.ts';
import { SaveStateNote } from './save-state.tsx';
import type { SharedProps } from './shared-props.ts';
import { Steps, titleOf } from './steps.tsx';
import { ofFinding, ofTheService, ofUnlisted, ofUpload, type Problem } from './submission-problems.ts';

interface CheckProps extends SharedProps {
  /** All fields, without the numbers of items in their labels. */
  fields: readonly Field[];
  onSubmitted(submission: Submission): void;
  onEnd(reason: EndReason): void;
  onLeft(): void;
}

export function CheckPage(props: CheckProps) {
  const { frame, form, draft, pages, place, go, announcement } = props;
  const { texts, data } = form;
  const { problems, attempt, isBusy, submit, ...hidden } = useSubmission(props);
  const isSlow = useSlow(isBusy);
  const open = (field: Field) => {
    const at = pages.findIndex((page) =>
      fieldsOf(page.elements, place, data).some(({ path }) => isSame(path, field.path)),
    );
    go(at + 1);
    focusOn(idOf(field.path));
  };
  const items = problems.map(
    ({ text, field, target }): SummaryItem => ({
      text: text(texts),
      target: field ? idOf(field.path) : target,
      onFollow: field && (() => follow(field)),
    }),
  );
  const follow = (field: Field) => {
    props.setErrors(new Map(problems.flatMap((one) => (one.field ? [[pointerOf(one.field.path), one.text]] : []))));
    open(field);
  };
  return (
    <Page
      frame={frame}
      title={texts.check.title}
      caption={texts.steps.step(pages.length + 1, pages.length + 1)}
      pageKey="check"
      hasErrors={items.length > 0}
      announcement={announcement}
    >
      <Steps pages={pages} current="check" go={go} texts={texts} />
      <ErrorSummary title={texts.problem} attempt={attempt} items={items} />
      <HiddenAnswers paths={problems.flatMap((one) => (one.hidden ? [one.hidden] : []))} {...hidden} />
      {pages.map((page, index) => (
        <section key={titleOf(page, index + 1, texts)}>
          <h2>{titleOf(page, index + 1, texts)}</h2>
          <Answers fields={answersOf(props, withTitles(fieldsOf(page.elements, place, data), texts))} change={open} />
        </section>
      ))}
      {pages.length === 0 && <p>{texts.check.noPages}</p>}
      <p>{texts.check.final}</p>
      <div class="buttons">
        <button type="button" aria-disabled={isBusy} onClick={() => void submit()}>
          {isBusy ? texts.check.sending : texts.check.send}
        </button>
        <span role="status">{isSlow && texts.wait}</span>
        {pages.length > 0 && (
          <button type="button" class="quiet" onClick={() => go(pages.length)}>
            {texts.back}
          </button>
        )}
        <LeaveButtons work={draft.work} onLeft={props.onLeft} onDelete={() => go('delete')} />
      </div>
      <SaveStateNote state={draft.state} retry={() => draft.work.retryNow()} />
    </Page>
  );
}

const isSame = (one: readonly string[], other: readonly string[]) => pointerOf(one) === pointerOf(other);

const answersOf = ({ form }: SharedProps, fields: readonly Field[]) =>
  summarized(fields, (field) => itemsOf(field, form.data).length === 0);

/** The problems that this page finds without the service. */
function problemsOf({ draft, validator, fields }: CheckProps): Problem[] {
  const { content, unlisted } = draft.work;
  const hasAnswer = (path: Path) => (valueAt(content.data, path) ?? null) !== null;
  const typed = fields.filter(({ path }) => unlisted.has(pointerOf(path)) && !hasAnswer(path));
  // A finding about a question that is not shown is left to the service.
  const findings = findingsFor(content.data, fields, validator).filter(({ finding, field }) =>
    field ? !typed.includes(field) : finding.path.length === 0,
  );
  return [
    ...typed.map((field) => ofUnlisted(field, fields)),
    ...findings.map(({ finding, field }) => ofFinding(finding, field, fields)),
  ];
}

function useSubmission(props: CheckProps) {
  const { form, draft } = props;
  const { api, formId } = form;
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [attempt, setAttempt] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const [isRemoved, setRemoved] = useState(false);
  /**
   * The idempotency key. It changes only after the service has rejected a submission, so that a retry after a lost
   * response gets the same receipt.
   */
  const key = useRef(newId());
  const fail = (found: readonly Problem[]) => {
    setProblems(found);
    setAttempt((last) => last + 1);
  };
  const isShown = useIsShown();
  const send = async () => {
    setProblems([]);
    setRemoved(false);
    const { uploads, saver } = draft.work;
    if (!(await uploads.settled())) return fail(uploads.failed.map(ofUpload));
    const found = problemsOf(props);
    if (found.length > 0) return fail(found);
    if (!(await saver.flush()))
      return fail([{ text: ({ saved }) => (saver.state === 'refused' ? saved.refused : saved.offlineRead) }]);
    // A person who went to another page while files were being sent may still change answers, so do not submit.
    if (isShown.current) props.onSubmitted(await api.submit(formId, saver.etag, key.current));
  };
  const submit = async () => {
    if (isBusy) return;
    setBusy(true);
    await send().catch((cause: unknown) => {
      // The service has stored the rejection under the key, so the next attempt, after a change, needs a new key.
      if (!asProblem(cause).isTemporary) key.current = newId();
      refused(cause);
    });
    setBusy(false);
  };
  const refused = (cause: unknown) => {
    const problem = asProblem(cause);
    const { status, errors } = problem;
    const end = endOf(problem);
    if (status === 401) draft.work.requireCode();
    else if (status === 412) {
      fail([{ text: ({ check }) => check.changed }]);
      draft.work.takeChanges();
    } else if (end) props.onEnd(end);
    else if (status === 400 && errors.length > 0) fail(ofTheService(errors, props));
    else fail([{ text: (texts) => problemText(cause, texts, texts.code.tooMany) }]);
  };
  const onRemoved = () => {
    const left = problems.filter(({ hidden }) => !hidden);
    if (left.length > 0) return fail(left);
    setProblems([]);
    setRemoved(true);
  };
  return { problems, attempt, isBusy, submit, isRemoved, onRemoved };
}
