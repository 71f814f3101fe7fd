// Holds the content of an open draft, sends its files, saves it, and handles obstacles to saving, such as conflicts.
// The work continues while the form is not shown, so that the browser's buttons Back and Forward lose no answers.
import { type Api, ApiProblem, asProblem, type Draft, endOf, type Submission } from '../api.ts';
import { type Difference, merge } from '../model/conflict.ts';
import { mergedFiles, storedName, withFile } from '../model/files.ts';
import { withValueAt } from '../model/json.ts';
import { type Content, type EndReason, type Obstacle, Saver, type SaveState } from './saver.ts';
import { Uploads } from './uploads.ts';

/**
 * An action that the person must take before saving continues. `code`: enter a code; `next` is the work that follows.
 * `conflict`: choose between answers; `merged` is the data without these choices.
 */
export type Pause =
  | { type: 'code'; next: 'save' | 'compare' | 'nothing' }
  | { type: 'conflict'; conflicts: readonly Difference[]; merged: unknown; theirs: Draft };

interface DraftOptions {
  api: Api;
  formId: string;
  draft: Draft;
  /** Maximum size of a file in bytes; undefined if it is not known. */
  fileLimit?: number | undefined;
  /** Called when the form turns out to be locked, submitted or deleted. */
  onEnd(reason: EndReason): void;
}

/** The component that shows the draft. */
export interface DraftView {
  /** Called after each change of the work. */
  changed(): void;
  /** Called after changes from another window were merged. */
  merged(): void;
  /** Called after a file was sent and added to the form. */
  sent(name: string): void;
}

const retryMs = 3_000;

export class DraftWork {
  content: Content;
  state: SaveState = 'saved';
  pause: Pause | undefined;
  /** The receipt, after the form was submitted. */
  submission: Submission | undefined;
  /** Texts that were typed into an input and are not in its list, keyed by the pointer of the question. */
  unlisted = new Map<string, string>();
  readonly uploads: Uploads;
  readonly saver: Saver;
  readonly #options: DraftOptions;
  readonly #online = () => this.retryNow();
  // A phone that shows another app may end the page later without an event, and stops its timers until then.
  readonly #hidden = () => {
    if (document.hidden && (this.state === 'waiting' || this.state === 'saving')) void this.saver.flush();
  };
  readonly #warn = (event: Event) => event.preventDefault();
  #view: DraftView | undefined;
  /** Set while the data of another window cannot be read. */
  #nextRead: ReturnType<typeof setTimeout> | undefined;

  constructor(options: DraftOptions) {
    const { api, formId, draft } = options;
    this.#options = options;
    this.content = { data: draft.data, files: draft.files };
    this.saver = new Saver({
      content: this.content,
      etag: draft.etag,
      put: (next, etag, saveId) => api.put(formId, next, etag, saveId),
      onState: (state) => this.#setState(state),
      onBlocked: (reason) => this.#handleObstacle(reason),
    });
    this.uploads = new Uploads({
      send: async (file, signal) => {
        if (file.size > (options.fileLimit ?? Number.POSITIVE_INFINITY)) throw new ApiProblem(413);
        return (await api.upload(formId, file, signal)).urn;
      },
      onSent: ({ path, file, isMultiple }, urn) => {
        this.change(withFile(this.content, path, { urn, name: storedName(file.name), isMultiple }));
        this.#view?.sent(file.name);
      },
      onFailed: (problem) => this.#uploadFailed(problem),
      onChanged: () => this.#notifyView(),
    });
    window.addEventListener('online', this.#online);
    document.addEventListener('visibilitychange', this.#hidden);
  }

  /**
   * Notifies `view` of changes. The returned function ends the notifications, and immediately saves unsaved changes.
   */
  show(view: DraftView): () => void {
    this.#view = view;
    return () => {
      this.#view = undefined;
      if (this.state === 'waiting') void this.saver.flush();
    };
  }

  change(content: Content): void {
    this.content = content;
    this.#notifyView();
    this.saver.change(content);
    // An upload that ends during a conflict changes the content, so the merge is repeated.
    if (this.pause?.type === 'conflict') this.#merge(this.pause.theirs);
  }

  /** True if nothing would be lost if the page were closed now: everything is saved, and no file is left to send. */
  get isSafe(): boolean {
    return this.saver.isClosed || (this.state === 'saved' && this.uploads.all.length === 0);
  }

  /** Waits for the files that are being sent, then saves. */
  async flush(): Promise<'saved' | 'unsent' | 'unsaved'> {
    if (!(await this.uploads.settled())) return 'unsent';
    return (await this.saver.flush()) ? 'saved' : 'unsaved';
  }

  /** Retries what failed now, because the connection is back or the person asks for it. */
  retryNow(): void {
    if (this.#nextRead === undefined) this.saver.retryNow();
    else void this.#readAndMerge();
  }

  submitted(submission: Submission): void {
    this.submission = submission;
    this.#notifyView();
  }

  /** Shows the page that asks for a code. Keeps a pause that has begun, because saving may wait for its end. */
  requireCode(): void {
    if (!this.pause) this.#setPause({ type: 'code', next: 'nothing' });
  }

  /** Reads and shows what another window has saved, because the service refused to submit an older version. */
  takeChanges(): void {
    void this.#readAndMerge();
  }

  /**
   * Ends the pause in which the applicant had to enter a code, and does the work that waited for the code. Files that
   * were refused without it are sent again.
   */
  async codeEntered(): Promise<void> {
    const next = this.pause?.type === 'code' ? this.pause.next : 'nothing';
    this.#setPause(undefined);
    this.uploads.retryAfterCode();
    if (next === 'compare') await this.#readAndMerge();
    else if (next === 'save') this.saver.resume(this.content);
  }

  /** Ends a conflict with the values that the person has chosen. */
  choose(chosen: readonly { difference: Difference; isMine: boolean }[]): void {
    if (this.pause?.type !== 'conflict') return;
    const { merged, theirs } = this.pause;
    const mine = chosen.filter(({ isMine }) => isMine).map(({ difference }) => difference);
    this.#resumeWith(
      mine.reduce<unknown>((data, { path, mine: value }) => withValueAt(data, path, value), merged),
      theirs,
    );
  }

  /** Ends the work. Drops unsaved changes and unsent files. */
  close(): void {
    this.saver.close();
    this.uploads.discardAll();
    window.removeEventListener('online', this.#online);
    document.removeEventListener('visibilitychange', this.#hidden);
    window.removeEventListener('beforeunload', this.#warn);
  }

  #setState(state: SaveState): void {
    this.state = state;
    this.#notifyView();
  }

  #handleObstacle(reason: Obstacle): void {
    if (reason === 'code') this.#requireCodeToSave();
    else if (reason === 'conflict') void this.#readAndMerge();
    else this.#options.onEnd(reason);
  }

  #requireCodeToSave(): void {
    // A comparison that waits for the code also saves, after it has merged the changes.
    const isComparing = this.pause?.type === 'code' && this.pause.next === 'compare';
    if (!isComparing) this.#setPause({ type: 'code', next: 'save' });
  }

  #uploadFailed(problem: ApiProblem): void {
    const end = endOf(problem);
    if (end) this.#options.onEnd(end);
    else if (problem.status === 401) this.requireCode();
  }

  /** Reads and merges the data that another window has saved. */
  async #readAndMerge(): Promise<void> {
    clearTimeout(this.#nextRead);
    this.#nextRead = undefined;
    if (this.saver.isClosed) return;
    const { api, formId } = this.#options;
    const theirs = await api.read(formId).catch((cause: unknown) => {
      if (!this.saver.isClosed) this.#readFailed(asProblem(cause));
    });
    if (theirs && !this.saver.isClosed) this.#merge(theirs);
  }

  #readFailed(problem: ApiProblem): void {
    const end = endOf(problem);
    if (end) this.#options.onEnd(end);
    else if (problem.status === 401) this.#setPause({ type: 'code', next: 'compare' });
    else {
      this.#nextRead = setTimeout(() => void this.#readAndMerge(), Math.max(retryMs, problem.retryAfterMs ?? 0));
      // The changes wait until the other data is read.
      if (this.state === 'blocked') this.#setState('offline');
    }
  }

  /** Merges the data of another window. Asks the person only about answers that both windows have changed. */
  #merge(theirs: Draft): void {
    const { merged, conflicts } = merge(this.saver.base.data, this.content.data, theirs.data);
    if (conflicts.length > 0) this.#setPause({ type: 'conflict', conflicts, merged, theirs });
    else {
      this.#resumeWith(merged, theirs);
      this.#view?.merged();
    }
  }

  #resumeWith(merged: unknown, { data, files, etag }: Draft): void {
    this.content = { data: merged, files: mergedFiles(this.content.files, files, merged) };
    this.#setPause(undefined);
    this.saver.resume(this.content, { base: { data, files }, etag });
  }

  #setPause(pause: Pause | undefined): void {
    this.pause = pause;
    this.#notifyView();
  }

  /** Makes the browser warn before the page is closed, but only while changes are unsaved or files are unsent. */
  #notifyView(): void {
    if (this.isSafe) window.removeEventListener('beforeunload', this.#warn);
    else window.addEventListener('beforeunload', this.#warn);
    this.#view?.changed();
  }
}
