// Saves form data while people type. Sends one request at a time, and the newest data last. Repeats a failed request
// with the same id until its outcome is known, so that a lost response does not cause a conflict.
import { newId } from '../new-id.ts';

export interface Content {
  data: unknown;
  files: Record<string, string>;
}

/** The outcome of a save. `retry` includes lost connections. */
export type Outcome =
  | { type: 'saved'; etag: string }
  | { type: 'retry'; afterMs?: number | undefined }
  /** The service rejected this data and saved nothing. A save of other data may succeed. */
  | { type: 'refused' }
  | { type: Obstacle };

/** Why a form can no longer be filled in. */
export type EndReason = 'locked' | 'submitted' | 'gone';
export type Obstacle = 'conflict' | 'code' | EndReason;

/**
 * `refused`: the service responded, but does not accept this data. `blocked` waits for a person; the other states end
 * without a person's help.
 */
export type SaveState = 'saved' | 'waiting' | 'saving' | 'offline' | 'refused' | 'blocked';

export interface SaverOptions {
  content: Content;
  etag: string;
  put(content: Content, etag: string, saveId: string): Promise<Outcome>;
  onState(state: SaveState): void;
  /** Called once for each obstacle. Saving continues when `resume` is called. */
  onBlocked(reason: Obstacle): void;
}

/** Milliseconds without typing after which a save begins. */
const pauseMs = 800;
const longestPauseMs = 30_000;

export class Saver {
  /** The content that the service has stored. */
  base: Content;
  #current: Content;
  #etag: string;
  readonly #options: SaverOptions;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pending: { content: Content; saveId: string } | undefined;
  #isSending = false;
  #isClosed = false;
  #failures = 0;
  #state: SaveState = 'saved';
  #flushes: ((isSaved: boolean) => void)[] = [];

  constructor(options: SaverOptions) {
    this.#options = options;
    this.base = options.content;
    this.#current = options.content;
    this.#etag = options.etag;
  }

  /** The version that the service has stored, as far as this browser knows. */
  get etag(): string {
    return this.#etag;
  }

  get state(): SaveState {
    return this.#state;
  }

  /** Saves the content after a pause in which nothing else is typed. */
  change(content: Content): void {
    this.#current = content;
    if (this.#state === 'blocked' || this.#isSending || this.#state === 'offline') return;
    this.#setState('waiting');
    this.#schedule(pauseMs);
  }

  /** Saves now. Resolves to false if the save fails. The saver then retries, unless it is blocked or closed. */
  flush(): Promise<boolean> {
    if (this.#state === 'saved') return Promise.resolve(true);
    if (this.#state === 'blocked' || this.#isClosed) return Promise.resolve(false);
    const settled = new Promise<boolean>((resolve) => this.#flushes.push(resolve));
    // Without a timer, because a page that was just hidden may end before its next timer.
    clearTimeout(this.#timer);
    void this.#send();
    return settled;
  }

  /** Retries now, because the connection is back or the person asks for a retry. */
  retryNow(): void {
    if (this.#hasFailed()) this.#schedule(0);
  }

  /**
   * Continues after an obstacle. `now` is the content and ETag that the service has stored; undefined if they have not
   * changed.
   */
  resume(content: Content, now?: { base: Content; etag: string }): void {
    this.#current = content;
    this.#pending = undefined;
    if (now) [this.base, this.#etag] = [now.base, now.etag];
    this.#setState('waiting');
    this.#schedule(0);
  }

  /** Stops. Drops unsaved changes. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#resolveFlushes(false);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#send(), ms);
  }

  async #send(): Promise<void> {
    if (this.#isSending || this.#state === 'blocked') return;
    this.#isSending = true;
    this.#pending ??= { content: this.#current, saveId: newId() };
    const { content, saveId } = this.#pending;
    if (!this.#hasFailed()) this.#setState('saving');
    const outcome = await this.#options.put(content, this.#etag, saveId).catch((): Outcome => ({ type: 'retry' }));
    this.#isSending = false;
    this.#handle(outcome, content);
  }

  #handle(outcome: Outcome, content: Content): void {
    if (this.#isClosed) return;
    if (outcome.type === 'saved') this.#saved(outcome.etag, content);
    else if (outcome.type === 'retry') this.#retry(outcome.afterMs);
    else if (outcome.type === 'refused') {
      this.#pending = undefined;
      this.#retry(longestPauseMs, 'refused');
    } else {
      this.#pending = undefined;
      this.#setState('blocked');
      this.#resolveFlushes(false);
      this.#options.onBlocked(outcome.type);
    }
  }

  #saved(etag: string, content: Content): void {
    this.#etag = etag;
    this.base = content;
    this.#pending = undefined;
    this.#failures = 0;
    if (this.#current === content) {
      this.#setState('saved');
      this.#resolveFlushes(true);
    } else {
      this.#setState('waiting');
      this.#schedule(this.#flushes.length > 0 ? 0 : pauseMs);
    }
  }

  #hasFailed(): boolean {
    return this.#state === 'offline' || this.#state === 'refused';
  }

  #retry(afterMs: number | undefined, state: 'offline' | 'refused' = 'offline'): void {
    const pause = Math.min(longestPauseMs, 1_000 * 2 ** this.#failures);
    this.#failures += 1;
    this.#setState(state);
    this.#resolveFlushes(false);
    this.#schedule(Math.max(pause, afterMs ?? 0));
  }

  #setState(state: SaveState): void {
    if (state === this.#state || this.#isClosed) return;
    this.#state = state;
    this.#options.onState(state);
  }

  #resolveFlushes(isSaved: boolean): void {
    const waiting = this.#flushes;
    this.#flushes = [];
    for (const resolve of waiting) resolve(isSaved);
  }
}
