// Shows an open form: its pages, the summary and the receipt, or a page that interrupts them, such as the code page.
import { useMemo, useState } from 'preact/hooks';
import type { Fragment } from '../address.ts';
import type { Api, Definition } from '../api.ts';
import { Elements } from '../controls/element.tsx';
import { type FormContext, FormProvider } from '../form-context.ts';
import { type Place, pagesOf } from '../model/elements.ts';
import { mergedFiles, withoutItem } from '../model/files.ts';
import { isObject, type Path, pathOf, pathWithoutItem, pointerOf, withAnswer } from '../model/json.ts';
import { fieldsOf, visiblePages } from '../model/questions.ts';
import { withTitles } from '../model/titles.ts';
import { createValidator } from '../model/validator.ts';
import type { Registers } from '../registers.ts';
import type { DraftWork } from '../saving/draft-work.ts';
import type { EndReason } from '../saving/saver.ts';
import { useDraft } from '../saving/use-draft.ts';
import { type Message, textsOf } from '../texts/texts.ts';
import { CheckPage } from './check-page.tsx';
import { CodePage } from './code-page.tsx';
import { ConflictPage } from './conflict-page.tsx';
import { DeletePage } from './delete-page.tsx';
import type { FrameProps } from './frame.tsx';
import { QuestionPage } from './question-page.tsx';
import { ReceiptPage } from './receipt-page.tsx';
import type { FormModel, SharedProps } from './shared-props.ts';

export interface FormPagesProps {
  frame: FrameProps;
  api: Api;
  registers: Registers;
  definition: Definition;
  formId: string;
  work: DraftWork;
  fragment: Fragment;
  go(page: Fragment['page'], how?: 'push' | 'replace'): void;
  onEnd(reason: EndReason): void;
  onLeft(): void;
  /** Called when the person closes the receipt. */
  onFinished(): void;
  /** Called after the draft was deleted. */
  onDeleted(): void;
}

export function FormPages(props: FormPagesProps) {
  const { frame, api, definition, formId } = props;
  const texts = textsOf(frame.language);
  const [said, setSaid] = useState({ text: '', count: 0 });
  const announce = (text: string) => setSaid(({ count }) => ({ text, count: count + 1 }));
  // A new element, because screen readers do not read a text again that stays the same.
  const announcement = <span key={said.count}>{said.text}</span>;
  const [messages, setErrors] = useState<ReadonlyMap<string, Message>>(new Map());
  const draft = useDraft(props.work, {
    merged: () => announce(texts.conflict.merged),
    sent: (name) => announce(texts.files.uploaded(name)),
  });
  const errors = new Map([...messages].map(([pointer, message]) => [pointer, message(texts)]));
  const model = useModel(definition);
  const { data, files } = draft.content;
  const changeContent: FormContext['changeContent'] = (work) => draft.work.change(work(draft.work.content));
  const form: FormContext = {
    ...{ formId, api, texts, data, files, errors, changeContent, announce },
    uploads: draft.work.uploads,
    change: (path, value) => changeContent((latest) => ({ ...latest, data: withAnswer(latest.data, path, value) })),
    removeItem(list, index) {
      draft.work.uploads.removeItem(list, index);
      setErrors(entriesWithoutItem(messages, list, index));
      draft.work.unlisted = entriesWithoutItem(draft.work.unlisted, list, index);
      changeContent((latest) => withoutItem(latest, list, index));
    },
    registers: props.registers,
    language: frame.language,
    allowsFiles: definition.files,
    fileLimit: definition.fileLimit,
    unlisted: draft.work.unlisted,
    show: (elements, place) => <Elements elements={elements} place={place} />,
  };
  const pages = visiblePages(model.pages, data);
  return (
    <FormProvider value={form}>
      <ShownPage {...props} shared={{ ...model, frame, form, pages, draft, announcement, setErrors, go: props.go }} />
    </FormProvider>
  );
}

function ShownPage({ shared, ...props }: FormPagesProps & { shared: SharedProps }) {
  const { frame, api, formId, fragment } = props;
  const { draft, form, pages, place } = shared;
  const untitled = pages.flatMap((page) => fieldsOf(page.elements, place, form.data));
  const fields = withTitles(untitled, form.texts);
  if (draft.pause?.type === 'code')
    return (
      <CodePage
        {...{ frame, api, formId }}
        keepsData={draft.state !== 'saved'}
        onOpened={() => draft.work.codeEntered()}
      />
    );
  if (draft.pause?.type === 'conflict') {
    const { conflicts, theirs } = draft.pause;
    // The page names the files of both windows.
    const files = mergedFiles(form.files, theirs.files, [form.data, theirs.data]);
    return (
      <FormProvider value={{ ...form, files }}>
        <ConflictPage {...{ frame, conflicts, fields }} onChosen={(chosen) => draft.work.choose(chosen)} />
      </FormProvider>
    );
  }
  const { onLeft, onEnd } = props;
  const { submission } = draft.work;
  if (submission) return <ReceiptPage {...{ frame, submission, fields }} onFinished={props.onFinished} />;
  if (fragment.page === 'delete')
    return <DeletePage {...{ ...shared, onEnd }} onKept={() => history.back()} onDeleted={props.onDeleted} />;
  // Conditions may hide all pages.
  if (fragment.page === 'check' || pages.length === 0)
    return (
      <CheckPage
        {...{ ...shared, onEnd, onLeft }}
        fields={untitled}
        onSubmitted={(sent) => draft.work.submitted(sent)}
      />
    );
  const number = Math.min(Math.max(1, fragment.page ?? 1), pages.length);
  return <QuestionPage {...shared} number={number} onLeft={onLeft} />;
}

/**
 * Returns entries that are keyed by pointers, after an item was removed from a list. The entries of later items follow
 * these items.
 */
function entriesWithoutItem<T>(entries: ReadonlyMap<string, T>, list: Path, index: number): Map<string, T> {
  const kept = [...entries].flatMap(([pointer, entry]): [string, T][] => {
    const path = pathWithoutItem(pathOf(pointer), list, index);
    return path ? [[pointerOf(path), entry]] : [];
  });
  return new Map(kept);
}

function useModel({ dataSchema, uiSchema, urnPrefix }: Definition): FormModel {
  return useMemo(() => {
    const schema = isObject(dataSchema) ? dataSchema : {};
    const place: Place = { root: schema, schema, path: [] };
    return { place, pages: pagesOf(uiSchema, place), validator: createValidator(dataSchema, urnPrefix) };
  }, [dataSchema, uiSchema, urnPrefix]);
}
