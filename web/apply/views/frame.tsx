// The frame of all pages: the name of the organisation, the language, the heading that gets the focus, and
// announcements.
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { type Language, textsOf } from '../texts/texts.ts';

export interface FrameProps {
  language: Language;
  languages: readonly Language[];
  setLanguage(language: Language): void;
  /** Names of the organisation and of the form. */
  owner?: string | undefined;
  form?: string | undefined;
}

interface PageProps {
  frame: FrameProps;
  title: string;
  /** Small text above the heading, such as the number of the step. */
  caption?: string;
  hasErrors?: boolean;
  /** Changes when another page is shown, so that the heading gets the focus. */
  pageKey: string;
  announcement?: ComponentChildren;
  children: ComponentChildren;
}

/** True after a page was shown. The focus stays at the beginning of the document when a person opens the start page. */
let hasShownPage = false;

export function Page({ frame, title, caption, hasErrors = false, pageKey, announcement, children }: PageProps) {
  const texts = textsOf(frame.language);
  const heading = useRef<HTMLHeadingElement>(null);
  // Layout effects set the language and the title before a screen reader reads the page. They also give the heading the
  // focus before a field of the new page can take it.
  useLayoutEffect(() => {
    document.documentElement.lang = frame.language;
    const full = [title, frame.form, frame.owner].filter((part) => part && part !== title);
    const named = [title, ...full].join(' – ');
    document.title = hasErrors ? texts.errorTitle(named) : named;
  });
  useLayoutEffect(() => {
    if (pageKey === 'loading') return;
    window.scrollTo(0, 0);
    if (hasShownPage || pageKey !== 'start') heading.current?.focus({ preventScroll: true });
    hasShownPage = true;
  }, [pageKey]);
  return (
    <>
      <header class="top">
        <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
          {texts.skip}
        </button>
        <p>{[frame.owner, frame.form].filter(Boolean).join(' – ') || 'Formgate'}</p>
        <LanguageSwitch {...frame} />
      </header>
      <main id="main" tabIndex={-1}>
        {caption !== undefined && <p class="caption">{caption}</p>}
        <h1 tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {children}
      </main>
      <p class="visually-hidden" role="status">
        {announcement}
      </p>
    </>
  );
}

function LanguageSwitch({ language, languages, setLanguage }: FrameProps) {
  const texts = textsOf(language);
  const { code, name } = texts.otherLanguage;
  const other: Language = code === 'fr' ? 'fr' : 'en';
  if (!languages.includes(other)) return null;
  return (
    <nav aria-label={texts.languageOfThisPage}>
      <button type="button" class="link" lang={other} onClick={() => setLanguage(other)}>
        {name}
      </button>
    </nav>
  );
}
