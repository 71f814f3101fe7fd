// Watches one proxied request: the time until its response begins, the end of its session, and the rate of its bodies.
// Calls the request's listeners, but never ends the request itself.
import type { LiveSession } from '../sessions/session.ts';
import type { Download, RequestBody } from './bodies.ts';
import type { Outgoing, ProxyOptions } from './proxy-options.ts';

/** The listeners of a watched request. */
export interface Watched {
  onSessionEnd(): void;
  onSlow(direction: 'upload' | 'download'): void;
}

export class RequestWatch {
  readonly #options: ProxyOptions;
  readonly #session: LiveSession;
  /** True for streams. The number of streams is limited, but the rate of their bodies is not. */
  readonly #isStream: boolean;
  readonly #isUpgrade: boolean;
  readonly #watched: Watched;
  readonly #ended = () => this.#watched.onSessionEnd();
  #endSession: (() => void) | undefined;
  #endUpload: (() => void) | undefined;
  #endDownload: (() => void) | undefined;

  constructor(options: ProxyOptions, { session, isStream, isUpgrade }: Outgoing, watched: Watched) {
    this.#options = options;
    this.#session = session;
    this.#isStream = isStream;
    this.#isUpgrade = isUpgrade;
    this.#watched = watched;
  }

  /** Counts the request as an open stream. Throws Problem `busy` or `too-many-requests` if a limit is reached. */
  openStream(): void {
    this.#endSession?.();
    const kind = this.#isUpgrade ? 'websocket' : 'event-stream';
    this.#endSession = this.#options.streams.open(this.#session, kind, this.#ended);
  }

  /** Watches the session of a request that may last long. Costs little if the request ends soon. */
  session(): void {
    this.#endSession ??= this.#options.streams.watch(this.#session, this.#ended);
  }

  /** Watches the session of a request that has already lasted long. */
  sessionAtOnce(): void {
    this.#endSession ??= this.#session.onEnd(this.#ended);
  }

  upload(body: RequestBody): void {
    if (this.#isStream) return;
    this.#endUpload ??= this.#options.rate.watch(body, () => this.#watched.onSlow('upload'));
  }

  download(body: Download): void {
    if (this.#isStream) return;
    this.#endDownload ??= this.#options.rate.watch(body, () => this.#watched.onSlow('download'));
  }

  close(): void {
    this.#endSession?.();
    this.#endUpload?.();
    this.#endDownload?.();
  }
}

export interface Waits {
  /** Called once, after the wait for the response has lasted one second, or the limit if it is shorter. */
  onLong(): void;
  /** Called when the limit is reached. If `onLate` returns false, the timer starts again. */
  onLate(): boolean;
}

/** Milliseconds after which `onLong` is called, unless the limit is shorter. */
const long = 1_000;

/** Limits the time that an upstream may take to begin its response. Also reports a wait that has lasted one second. */
export class FirstByteTimer {
  readonly #limit: number;
  readonly #waits: Waits;
  #timer: NodeJS.Timeout | undefined;
  #isLong = false;

  /** `limit` is the maximum wait in milliseconds. */
  constructor(limit: number, waits: Waits) {
    this.#limit = limit;
    this.#waits = waits;
  }

  start(): void {
    this.#isLong = false;
    this.#timer = setTimeout(() => this.#onLong(), Math.min(long, this.#limit));
  }

  /**
   * Restarts the timer unless it has been stopped. Call this when more of the request has been sent to the upstream,
   * which may go on after the response has begun.
   */
  refresh(): void {
    if (!this.#timer) return;
    if (!this.#isLong) this.#timer.refresh();
    else {
      this.stop();
      this.start();
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #onLong(): void {
    this.#isLong = true;
    this.#waits.onLong();
    const late = () => {
      if (!this.#waits.onLate()) this.start();
    };
    this.#timer = setTimeout(late, this.#limit - Math.min(long, this.#limit));
  }
}
