// Watches one proxied request: the time until its response begins, the end of its session, and the minimum rate of its
// bodies. It reports to the request, which ends itself.
import type { LiveSession } from '../sessions/session.ts';
import type { Download, RequestBody } from './bodies.ts';
import type { Outgoing, ProxyOptions } from './proxy-options.ts';

/** Receives the reports. */
export interface Watched {
  onSessionEnd(): void;
  onSlow(direction: 'upload' | 'download'): void;
}

export class RequestWatch {
  readonly #options: ProxyOptions;
  readonly #session: LiveSession;
  /** Streams are limited by number, not by their rate. */
  readonly #isStream: boolean;
  readonly #watched: Watched;
  #endSession: (() => void) | undefined;
  #endUpload: (() => void) | undefined;
  #endDownload: (() => void) | undefined;

  constructor(options: ProxyOptions, { session, isStream }: Outgoing, watched: Watched) {
    this.#options = options;
    this.#session = session;
    this.#isStream = isStream;
    this.#watched = watched;
  }

  /** Counts the request as an open stream. Throws Problem `busy` or `too-many-requests` over a limit. */
  openStream(): void {
    this.#endSession?.();
    this.#endSession = this.#options.streams.open(this.#session, this.#ended());
  }

  /** For a request that may last; costs little if it does not. */
  session(): void {
    this.#endSession ??= this.#options.streams.watch(this.#session, this.#ended());
  }

  /** For a request that has lasted for a while already. */
  sessionAtOnce(): void {
    this.#endSession ??= this.#session.onEnd(this.#ended());
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

  #ended(): () => void {
    return () => this.#watched.onSessionEnd();
  }
}

export interface Waits {
  /** Called once, after a second. */
  onLong(): void;
  /** Called when the time is up. Returning false starts it again. */
  onLate(): boolean;
}

/** Milliseconds */
const long = 1_000;

/** Limits the time that an upstream may take to begin its response. It reports a wait of one second, too. */
export class FirstByteTimer {
  readonly #limit: number;
  readonly #waits: Waits;
  #timer: NodeJS.Timeout | undefined;
  #isLong = false;

  /** `limit`: milliseconds. */
  constructor(limit: number, waits: Waits) {
    this.#limit = limit;
    this.#waits = waits;
  }

  start(): void {
    this.#isLong = false;
    this.#timer = setTimeout(() => this.#onLong(), Math.min(long, this.#limit));
  }

  /** Starts the time again. */
  refresh(): void {
    if (!this.#isLong) this.#timer?.refresh();
    else {
      this.stop();
      this.start();
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
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
