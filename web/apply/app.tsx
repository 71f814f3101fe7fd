// The root of the applicant's pages. Finds the definition and the form that the address names, and shows the page for
// their state.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Address, addressOf, pathnameOf } from './address.ts';
import { type Api, ApiProblem, createApi, type Definition } from './api.ts';
import { createRegisters } from './registers.ts';
import { type Language, preferredLanguage, textsOf } from './texts/texts.ts';
import { useFragment } from './use-fragment.ts';
import { useOpened } from './use-opened.ts';
import { CodePage } from './views/code-page.tsx';
import { FormPages } from './views/form-pages.tsx';
import { type FrameProps, Page } from './views/frame.tsx';
import { type Message, MessagePage } from './views/message-page.tsx';
import { StartPage } from './views/start-page.tsx';

const languages: readonly Language[] = ['en', 'fr'];

export function App() {
  const [language, setLanguage] = useState(() => preferredLanguage(navigator.languages, languages));
  const address = useMemo(() => addressOf(location.pathname), []);
  const isChosen = useRef(false);
  const choose = (chosen: Language) => {
    isChosen.current = true;
    setLanguage(chosen);
  };
  const frame: FrameProps = { language, languages, setLanguage: choose };
  if (!address) return <MessagePage frame={frame} message={{ kind: 'home' }} />;
  const propose = (ofForm: Language) => isChosen.current || setLanguage(ofForm);
  return <FormApp frame={frame} address={address} proposeLanguage={propose} />;
}

interface FormAppProps {
  frame: FrameProps;
  address: Address;
  /** Shows the pages in the language of a form, unless the person has chosen a language. */
  proposeLanguage(language: Language): void;
}

function FormApp({ frame, address, proposeLanguage }: FormAppProps) {
  const api = useMemo(() => createApi(address.tenant), [address]);
  const [definition, setDefinition] = useState<Definition | Message>();
  useEffect(() => {
    api.definition(address.definition).then(setDefinition, (cause: unknown) => {
      const isUnknown = cause instanceof ApiProblem && [400, 404].includes(cause.status) && !cause.isUnrouted;
      setDefinition({ kind: isUnknown ? 'unknown' : 'failed' });
    });
  }, [api, address]);
  if (!definition) return <LoadingPage frame={frame} />;
  if ('kind' in definition) return <MessagePage frame={frame} message={definition} />;
  const known = { ...frame, ...languagesOf(frame, definition), owner: definition.tenantName, form: definition.name };
  return <KnownForm frame={known} {...{ address, api, definition, proposeLanguage }} />;
}

/** If a definition says in which language its texts are, the pages have no other one: they would mix two languages. */
function languagesOf({ language }: FrameProps, definition: Definition): Pick<FrameProps, 'language' | 'languages'> {
  const ofTexts = definition.languages.filter((one) => one === definition.language);
  const available = ofTexts.length > 0 ? ofTexts : definition.languages;
  return { language: preferredLanguage([language], available), languages: available };
}

function LoadingPage({ frame }: { frame: FrameProps }) {
  return (
    <Page frame={frame} title={textsOf(frame.language).loading} pageKey="loading">
      {null}
    </Page>
  );
}

interface KnownFormProps extends FormAppProps {
  api: Api;
  definition: Definition;
}

function KnownForm({ frame, address, api, definition, proposeLanguage }: KnownFormProps) {
  const [fragment, go] = useFragment();
  const formId = fragment.form ?? '';
  const registers = useMemo(() => createRegisters(api), [api]);
  const openElsewhere = (definitionId: string) =>
    location.replace(pathnameOf({ ...address, definition: definitionId }) + location.hash);
  const opened = useOpened({ api, definition, formId, proposeLanguage, openElsewhere });
  const { shown } = opened;
  const started = (form: { id: string; etag: string }) => {
    opened.begin(form);
    go({ form: form.id, page: 1 });
  };
  const showStart = (first: 'new' | Message, how: 'push' | 'replace') => {
    opened.close(first);
    go({ form: undefined, page: undefined }, how);
  };
  if (shown === 'loading') return <LoadingPage frame={frame} />;
  if (shown === 'new') return <StartPage {...{ frame, api, definition }} onStarted={started} />;
  if (shown === 'code') return <CodePage {...{ frame, api, formId, keepsData: false }} onOpened={opened.open} />;
  if ('kind' in shown) {
    const start = () => showStart('new', 'push');
    return <MessagePage frame={frame} message={shown} start={start} retry={opened.retry} />;
  }
  return (
    <FormPages
      key={formId}
      {...{ frame, api, registers, definition, formId, work: shown, fragment }}
      go={(page, how) => go({ form: formId, page }, how)}
      onEnd={opened.end}
      onLeft={() => showStart({ kind: 'left' }, 'replace')}
      onFinished={() => showStart({ kind: 'finished' }, 'replace')}
      onDeleted={() => showStart({ kind: 'deleted' }, 'replace')}
    />
  );
}
