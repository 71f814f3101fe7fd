// The first page of a form. Explains the form, what people need and how saving works, and asks for the address for
// codes.
import { useRef, useState } from 'preact/hooks';
import { ErrorSummary } from '../../shared/error-summary.tsx';
import { described, LabelledField } from '../../shared/field.tsx';
import { type Api, ApiProblem, type Definition } from '../api.ts';
import { newId } from '../new-id.ts';
import { type Language, type Message, textsOf } from '../texts/texts.ts';
import { useSlow } from '../use-slow.ts';
import { type FrameProps, Page } from './frame.tsx';
import { problemText } from './problem-text.ts';

interface StartProps {
  frame: FrameProps;
  api: Api;
  definition: Definition;
  onStarted(form: { id: string; etag: string }): void;
}

export function StartPage({ frame, api, definition, onStarted }: StartProps) {
  const { language } = frame;
  const texts = textsOf(language);
  const [email, setEmail] = useState('');
  const [name, setName] = useState('');
  /** `field` is the id of the input that has the error. */
  const [error, setError] = useState<{ text: Message; field: 'email' | 'name' | undefined }>();
  const [attempt, setAttempt] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const isSlow = useSlow(isBusy);
  const keyFor = useIdempotencyKey();
  const fail = (text: Message, field?: 'email' | 'name') => {
    setError({ text, field });
    setAttempt(attempt + 1);
  };
  const start = async (event: Event) => {
    event.preventDefault();
    const address = email.trim();
    if (address === '') return fail(({ start }) => start.noEmail, 'email');
    if (!/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(address)) return fail(({ start }) => start.badEmail, 'email');
    if (isBusy) return;
    setBusy(true);
    try {
      const applicant = { email: address, ...(name.trim() !== '' && { name: name.trim() }), language };
      onStarted(await api.create(definition.id, applicant, keyFor(applicant)));
    } catch (cause) {
      const isAbout = (pointer: string) =>
        cause instanceof ApiProblem && cause.errors.some((found) => found.pointer === pointer);
      if (isAbout('/email')) fail(({ start }) => start.badEmail, 'email');
      else if (isAbout('/name')) fail(({ start }) => start.badName, 'name');
      else fail((now) => problemText(cause, now, now.states.tooMany));
    }
    setBusy(false);
  };
  const errorOf = (field: string) => (error?.field === field ? error.text(texts) : undefined);
  return (
    <Page frame={frame} title={definition.name} pageKey="start" hasErrors={error !== undefined}>
      <ErrorSummary
        title={texts.problem}
        attempt={attempt}
        items={error ? [{ text: error.text(texts), target: error.field }] : []}
      />
      <Introduction definition={definition} language={language} />
      <form noValidate onSubmit={(event) => void start(event)}>
        <EmailField value={email} set={setEmail} error={errorOf('email')} language={language} />
        <NameField value={name} set={setName} error={errorOf('name')} language={language} />
        <LanguageChoice frame={frame} />
        <div class="buttons">
          <button type="submit" aria-disabled={isBusy}>
            {texts.start.button}
          </button>
          <span role="status">{isSlow && texts.wait}</span>
        </div>
      </form>
      <p class="hint">{texts.start.again}</p>
    </Page>
  );
}

/**
 * Returns a function that returns the idempotency key of a request. An unchanged request keeps its key, so that a retry
 * after a lost response creates no second draft. A changed request gets a new key, because the form service refuses a
 * key that it has seen with another body.
 */
function useIdempotencyKey(): (applicant: object) => string {
  const last = useRef({ key: '', body: '' });
  return (applicant) => {
    const body = JSON.stringify(applicant);
    if (body !== last.current.body) last.current = { key: newId(), body };
    return last.current.key;
  };
}

function Introduction({ definition, language }: { definition: Definition; language: Language }) {
  const { start } = textsOf(language);
  return (
    <>
      {definition.description && <p>{definition.description}</p>}
      <h2>{start.need}</h2>
      <ul>
        <li>{start.needEmail}</li>
        <li>{start.needTime}</li>
      </ul>
      <h2>{start.saving}</h2>
      <p>{start.savingText}</p>
      <p>{start.keeping}</p>
    </>
  );
}

interface InputProps {
  value: string;
  set(value: string): void;
  error: string | undefined;
  language: Language;
}

function EmailField({ value, set, error, language }: InputProps) {
  const texts = textsOf(language);
  const parts = {
    id: 'email',
    label: texts.start.email,
    hint: texts.start.emailHint,
    error,
    errorPrefix: texts.problemAt,
  };
  return (
    <LabelledField {...parts}>
      <input
        id="email"
        type="email"
        autocomplete="email"
        spellcheck={false}
        {...described(parts)}
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </LabelledField>
  );
}

function NameField({ value, set, error, language }: InputProps) {
  const texts = textsOf(language);
  const parts = { id: 'name', label: texts.optional(texts.start.name), error, errorPrefix: texts.problemAt };
  return (
    <LabelledField {...parts}>
      <input
        id="name"
        autocomplete="name"
        {...described(parts)}
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </LabelledField>
  );
}

const languageNames: Record<Language, string> = { en: 'English', fr: 'Français' };

function LanguageChoice({ frame: { language, languages, setLanguage } }: { frame: FrameProps }) {
  const { start } = textsOf(language);
  if (languages.length < 2) return null;
  return (
    <fieldset class="field">
      <legend>{start.language}</legend>
      {languages.map((code) => (
        <div class="choice" key={code}>
          <input
            type="radio"
            name="language"
            id={`language-${code}`}
            checked={code === language}
            onChange={() => setLanguage(code)}
          />
          <label for={`language-${code}`} lang={code}>
            {languageNames[code]}
          </label>
        </div>
      ))}
    </fieldset>
  );
}
