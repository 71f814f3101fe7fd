// The root of the applicant's pages. Finds the definition and the form that the address names, and shows the page for
// their state.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type Address, addressOf } from './address.ts';
import { type Api, ApiProblem, createApi, type Definition, type Draft, type FormStatus } from './api.ts';
import { defaultsOf } from './model/defaults.ts';
import { createRegisters } from './registers.ts';
import { type Language, preferredLanguage, textsOf } from './texts/texts.ts';
import { useFragment } from './use-fragment.ts';
import { CodePage } from './views/code-page.tsx';
import { FormPages } from './views/form-pages.tsx';
import { type FrameProps, Page } from './views/frame.tsx';
import { type Message, MessagePage } from './views/message-page.tsx';
import { StartPage } from './views/start-page.tsx';

const languages: readonly Language[] = ['en', 'fr'];

export function App() {
  const [language, setLanguage] = useState(() => preferredLanguage(navigator.languages, languages));
  const address = useMemo(() => addressOf(location.pathname), []);
  const frame: FrameProps = { language, languages, setLanguage };
  if (!address) return <MessagePage frame={frame} message={{ kind: 'home' }} />;
  return <FormApp frame={frame} address={address} />;
}

function FormApp({ frame, address }: { frame: FrameProps; address: Address }) {
  const api = useMemo(() => createApi(address.tenant), [address]);
  const [definition, setDefinition] = useState<Definition | Message>();
  useEffect(() => {
    api.definition(address.definition).then(setDefinition, (cause: unknown) => {
      const isUnknown = cause instanceof ApiProblem && (cause.status === 404 || cause.status === 400);
      setDefinition({ kind: isUnknown ? 'unknown' : 'failed' });
    });
  }, [api, address]);
  if (!definition) return <LoadingPage frame={frame} />;
  if ('kind' in definition) return <MessagePage frame={frame} message={definition} />;
  const known = { ...frame, owner: definition.tenantName, form: definition.name, languages: definition.languages };
  return <KnownForm frame={known} api={api} definition={definition} />;
}

function LoadingPage({ frame }: { frame: FrameProps }) {
  return (
    <Page frame={frame} title={textsOf(frame.language).loading} pageKey="start">
      {null}
    </Page>
  );
}

interface KnownFormProps {
  frame: FrameProps;
  api: Api;
  definition: Definition;
}

/** `new` shows the start page; `code` shows the page that asks for a code. */
type Shown = 'new' | 'loading' | 'code' | Message | Draft;

function KnownForm({ frame, api, definition }: KnownFormProps) {
  const [fragment, go] = useFragment();
  const formId = fragment.form ?? '';
  const registers = useMemo(() => createRegisters(api), [api]);
  /**
   * `id` is the form that `shown` belongs to. It is compared with `formId`, because the fragment can change at any
   * time.
   */
  const [opened, setOpened] = useState<{ id: string; shown: Shown }>();
  const shown = opened?.id === formId ? opened.shown : formId === '' ? 'new' : 'loading';
  const open = () => openForm(api, formId, frame.setLanguage).then((next) => setOpened({ id: formId, shown: next }));
  useEffect(() => {
    if (shown === 'loading') void open();
  }, [formId]);
  const started = ({ id, etag }: { id: string; etag: string }) => {
    setOpened({ id, shown: { data: defaultsOf(definition), files: {}, etag } });
    go({ form: id, page: 1 });
  };
  const end = async (kind: 'locked' | 'submitted' | 'gone') => {
    const now = await openForm(api, formId, () => undefined);
    const isSame = typeof now === 'object' && 'kind' in now && now.kind === kind;
    setOpened({ id: formId, shown: isSame ? now : { kind } });
  };
  const showStart = (first: Shown, how: 'push' | 'replace') => {
    setOpened({ id: '', shown: first });
    go({ form: undefined, page: undefined }, how);
  };
  if (shown === 'loading') return <LoadingPage frame={frame} />;
  if (shown === 'new') return <StartPage {...{ frame, api, definition }} onStarted={started} />;
  if (shown === 'code') return <CodePage {...{ frame, api, formId, keepsData: false }} onOpened={open} />;
  if ('kind' in shown) return <MessagePage frame={frame} message={shown} start={() => showStart('new', 'push')} />;
  return (
    <FormPages
      key={formId}
      {...{ frame, api, registers, definition, formId, draft: shown, fragment }}
      go={(page, how) => go({ form: formId, page }, how)}
      onEnd={(reason) => void end(reason)}
      onLeft={() => showStart({ kind: 'left' }, 'replace')}
      onDeleted={() => showStart({ kind: 'deleted' }, 'replace')}
    />
  );
}

/** Reads the form if this browser is allowed to; otherwise returns the page to show instead. Never rejects. */
async function openForm(api: Api, id: string, setLanguage: (language: Language) => void): Promise<Shown> {
  try {
    const form = await api.status(id);
    if (form.language) setLanguage(form.language);
    return messageOf(form) ?? (form.readable ? await api.read(id) : 'code');
  } catch (cause) {
    if (!(cause instanceof ApiProblem)) return { kind: 'failed' };
    if (cause.status === 401) return 'code';
    return { kind: cause.status === 410 || cause.status === 404 ? 'gone' : 'failed' };
  }
}

function messageOf({ status, deleteOn, submitted, reference }: FormStatus): Message | undefined {
  const name = status.toLowerCase();
  if (name === 'locked') return { kind: 'locked', deleteOn };
  return name === 'draft' ? undefined : { kind: 'submitted', submitted, number: reference ?? undefined };
}
