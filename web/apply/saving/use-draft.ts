// The draft that is open in this browser: its content, and what keeps it from being saved.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Api, ApiProblem, type Draft } from '../api.ts';
import { type Difference, merge } from '../model/conflict.ts';
import { withValueAt } from '../model/json.ts';
import { newId } from '../new-id.ts';
import { type Content, type Obstacle, Saver, type SaveState } from './saver.ts';

/** What the person has to do before saving continues. `code`: enter a code; `next` is the work that follows. */
export type Pause =
  | { type: 'code'; next: 'save' | 'compare' | 'nothing' }
  | { type: 'conflict'; conflicts: readonly Difference[]; merged: unknown; theirs: Draft };

interface DraftOptions {
  api: Api;
  formId: string;
  draft: Draft;
  /** Called when the form turns out to be locked, submitted or deleted. */
  onEnd(reason: 'locked' | 'submitted' | 'gone'): void;
  /** Called after changes from another window were merged. */
  onMerged(): void;
}

export function useDraft(options: DraftOptions) {
  const latest = useRef(options);
  latest.current = options;
  const [state, setState] = useState<SaveState>('saved');
  const [pause, setPause] = useState<Pause>();
  const [, setContent] = useState<Content>(options.draft);
  const work = useMemo(() => new DraftWork(() => latest.current, { setState, setPause, setContent }), [options.formId]);
  useWatching(work.saver, state);
  return { state, pause, content: work.content, work };
}

export type OpenDraft = ReturnType<typeof useDraft>;

interface Shown {
  setState(state: SaveState): void;
  setPause(pause: Pause | undefined): void;
  setContent(content: Content): void;
}

const retryMs = 3_000;

/** The work on an open draft. The object lives as long as the form is open. */
class DraftWork {
  content: Content;
  readonly saver: Saver;
  readonly #options: () => DraftOptions;
  readonly #shown: Shown;
  #pause: Pause | undefined;

  constructor(options: () => DraftOptions, shown: Shown) {
    const { api, formId, draft } = options();
    this.#options = options;
    this.#shown = shown;
    this.content = { data: draft.data, files: draft.files };
    this.saver = new Saver({
      content: this.content,
      etag: draft.etag,
      put: (next, etag, saveId) => api.put(formId, next, etag, saveId),
      onState: shown.setState,
      onBlocked: (reason) => this.#meet(reason),
      newId,
    });
  }

  change(content: Content): void {
    this.#show(content);
    this.saver.change(content);
    // An upload can end while the person chooses between two versions.
    if (this.#pause?.type === 'conflict') this.#merge(this.#pause.theirs);
  }

  /** Shows the page that asks for a code. No work follows when the code has been entered. */
  requireCode(): void {
    this.#wait({ type: 'code', next: 'nothing' });
  }

  /** Ends the pause for a code, and does the work that was waiting for it. */
  async codeEntered(): Promise<void> {
    const next = this.#pause?.type === 'code' ? this.#pause.next : 'nothing';
    this.#wait(undefined);
    if (next === 'compare') await this.#compare();
    else if (next === 'save') this.saver.resume(this.content);
  }

  /** Ends a conflict with the values that the person has chosen. */
  choose(chosen: readonly { difference: Difference; isMine: boolean }[]): void {
    if (this.#pause?.type !== 'conflict') return;
    const { merged, theirs } = this.#pause;
    const mine = chosen.filter(({ isMine }) => isMine).map(({ difference }) => difference);
    this.#goOn(
      mine.reduce<unknown>((content, { path, mine: value }) => withValueAt(content, path, value), merged),
      theirs,
    );
  }

  #meet(reason: Obstacle): void {
    if (reason === 'code') this.#wait({ type: 'code', next: 'save' });
    else if (reason === 'conflict') void this.#compare();
    else this.#options().onEnd(reason);
  }

  /** Reads what the other window has saved, and merges it. */
  async #compare(): Promise<void> {
    const { api, formId } = this.#options();
    try {
      this.#merge(await api.read(formId));
    } catch (cause) {
      if (cause instanceof ApiProblem && cause.status === 401) this.#wait({ type: 'code', next: 'compare' });
      else setTimeout(() => void this.#compare(), retryMs);
    }
  }

  /** Asks only about answers that both windows have changed. */
  #merge(theirs: Draft): void {
    const { data, files } = theirs;
    const { merged, conflicts } = merge(this.saver.base, this.content, { data, files });
    if (conflicts.length > 0) this.#wait({ type: 'conflict', conflicts, merged, theirs });
    else {
      this.#goOn(merged, theirs);
      this.#options().onMerged();
    }
  }

  /** `merged` is a Content, because it was merged from two Contents. */
  #goOn(merged: unknown, { data, files, etag }: Draft): void {
    const content = merged as Content;
    this.#wait(undefined);
    this.#show(content);
    this.saver.resume(content, { base: { data, files }, etag });
  }

  #wait(pause: Pause | undefined): void {
    this.#pause = pause;
    this.#shown.setPause(pause);
  }

  #show(content: Content): void {
    this.content = content;
    this.#shown.setContent(content);
  }
}

/** Warns before a page with unsaved data is closed, and retries the save when the connection is back. */
function useWatching(saver: Saver, state: SaveState): void {
  useEffect(() => {
    const online = () => saver.retryNow();
    window.addEventListener('online', online);
    return () => {
      window.removeEventListener('online', online);
      saver.close();
    };
  }, [saver]);
  useEffect(() => {
    if (state === 'saved') return undefined;
    const warn = (event: Event) => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => window.removeEventListener('beforeunload', warn);
  }, [state]);
}
