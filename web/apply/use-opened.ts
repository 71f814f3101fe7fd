// Decides what to show for the form in the address. The work on a draft stays in memory until the person leaves or
// deletes the draft, or submits it elsewhere. The browser's buttons Back and Forward therefore show the answers as they
// were typed.
import { useEffect, useRef, useState } from 'preact/hooks';
import { isFormId } from './address.ts';
import { type Api, ApiProblem, type Definition, type Draft, endOf, type FormStatus } from './api.ts';
import { defaultsOf } from './model/defaults.ts';
import { isEqual } from './model/json.ts';
import { DraftWork } from './saving/draft-work.ts';
import type { EndReason } from './saving/saver.ts';
import type { Language } from './texts/texts.ts';
import type { Message } from './views/message-page.tsx';

/** `new` shows the start page; `code` shows the page that asks for a code. */
type WithoutDraft = 'new' | 'loading' | 'code' | Message;

interface OpenedOptions {
  api: Api;
  definition: Definition;
  /** Id of the form; empty if the address names none. */
  formId: string;
  /** Called with the language of a form that is opened. */
  proposeLanguage(language: Language): void;
  /** Called if the form belongs to another definition than the address names. Opens the address of that definition. */
  openElsewhere(definitionId: string): void;
}

export function useOpened(options: OpenedOptions) {
  const { api, definition, formId, openElsewhere } = options;
  const works = useRef(new Map<string, DraftWork>()).current;
  /** `id` names the form that `shown` belongs to. After a change of the address, `id` and `formId` may differ. */
  const [last, setLast] = useState<{ id: string; shown: WithoutDraft }>({ id: '', shown: 'new' });
  const latest = useRef(formId);
  latest.current = formId;
  const other = last.id === formId ? last.shown : formId === '' ? 'new' : 'loading';
  const shown: WithoutDraft | DraftWork = works.get(formId) ?? other;
  const show = (id: string, found: WithoutDraft | Draft) => {
    const draft = isDraft(found) ? found : undefined;
    if (draft && !works.has(id))
      works.set(
        id,
        new DraftWork({
          ...{ api, draft, formId: id, fileLimit: definition.fileLimit },
          onEnd: (reason) => void end(id, reason),
        }),
      );
    setLast({ id, shown: isDraft(found) ? 'loading' : found });
  };
  const open = async () => {
    const found = await openForm(options, formId);
    // The other definition's page replaces this page, and with it the drafts in memory.
    const isSafe = !isElsewhere(found) || (await saveAll(works.values()));
    if (latest.current !== formId) return;
    if (!isElsewhere(found)) show(formId, found);
    else if (isSafe) openElsewhere(found.definitionId);
    else show(formId, { kind: 'failed' });
  };
  useEffect(() => {
    if (shown === 'loading') void open();
  }, [formId]);
  const drop = (id: string) => {
    works.get(id)?.close();
    works.delete(id);
  };
  /**
   * Shows why the draft can no longer be filled in. If another form is shown now, the reason is shown later, when the
   * person returns to this draft.
   */
  const end = async (id: string, kind: EndReason) => {
    const now = await openForm({ api, definition, proposeLanguage: () => undefined }, id);
    drop(id);
    const isSame = typeof now === 'object' && 'kind' in now && now.kind === kind;
    if (latest.current === id) show(id, isSame ? now : { kind });
  };
  return {
    shown,
    open,
    /** Opens the form again after a failure. Does not load the page again, which could lose answers of other drafts. */
    retry() {
      show(formId, 'loading');
      void open();
    },
    end: (kind: EndReason) => void end(formId, kind),
    /** Shows a new draft, and saves the defaults of its questions. */
    begin({ id, etag }: { id: string; etag: string }) {
      const defaults = defaultsOf(definition);
      show(id, { data: {}, files: {}, etag });
      if (!isEqual(defaults, {})) works.get(id)?.change({ data: defaults, files: {} });
    },
    /** Forgets the form that is shown. `next` is shown when the address no longer names a form. */
    close(next: WithoutDraft) {
      drop(formId);
      setLast({ id: '', shown: next });
    },
  };
}

/** Saves the drafts and sends their files. Resolves to false if one of them is not safe afterwards. */
async function saveAll(works: Iterable<DraftWork>): Promise<boolean> {
  const all = [...works];
  await Promise.all(all.map((work) => work.isSafe || work.flush()));
  return all.every(({ isSafe }) => isSafe);
}

const isDraft = (found: WithoutDraft | Draft): found is Draft => typeof found === 'object' && 'etag' in found;

/** A form of another definition. The questions of this page's definition do not belong to its data. */
interface Elsewhere {
  definitionId: string;
}

const isElsewhere = (found: WithoutDraft | Draft | Elsewhere): found is Elsewhere =>
  typeof found === 'object' && 'definitionId' in found;

/** Reads the form if this browser may read it. Otherwise, returns the page to show instead. Never rejects. */
async function openForm(
  { api, definition, proposeLanguage }: Pick<OpenedOptions, 'api' | 'definition' | 'proposeLanguage'>,
  id: string,
): Promise<WithoutDraft | Draft | Elsewhere> {
  // The end of a link may be lost, or a character after the link may have become a part of it.
  if (!isFormId(id)) return { kind: 'unknown' };
  try {
    const form = await api.status(id);
    if (form.definitionId !== definition.id) return { definitionId: form.definitionId };
    if (form.language) proposeLanguage(form.language);
    return messageOf(form) ?? (form.readable ? await api.read(id) : 'code');
  } catch (cause) {
    if (!(cause instanceof ApiProblem)) return { kind: 'failed' };
    if (cause.status === 401) return 'code';
    return { kind: endOf(cause) === 'gone' ? 'gone' : 'failed' };
  }
}

function messageOf({ status, deleteOn, submitted, reference }: FormStatus): Message | undefined {
  const name = status.toLowerCase();
  if (name === 'locked') return { kind: 'locked', deleteOn };
  return name === 'draft' ? undefined : { kind: 'submitted', submitted, number: reference ?? undefined };
}
