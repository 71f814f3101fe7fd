// What watches one proxied request while it lasts: the end of its session, and the minimum rate of its bodies. It ends
// nothing by itself.
import type { LiveSession } from '../sessions/live-session.ts';
import type { Download } from './download.ts';
import type { Outgoing, RelayOptions } from './relay-options.ts';
import type { RequestBody } from './request-body.ts';

/** What happens to the request. */
export interface Watched {
  onSessionEnd(): void;
  onSlow(direction: 'upload' | 'download'): void;
}

export class ExchangeWatch {
  readonly #options: RelayOptions;
  readonly #session: LiveSession;
  /** What runs on a connection of its own is limited by number, not by its rate. */
  readonly #isStream: boolean;
  readonly #watched: Watched;
  #endSession: (() => void) | undefined;
  #endUpload: (() => void) | undefined;
  #endDownload: (() => void) | undefined;

  constructor(options: RelayOptions, { session, isStream }: Outgoing, watched: Watched) {
    this.#options = options;
    this.#session = session;
    this.#isStream = isStream;
    this.#watched = watched;
  }

  /** Takes a place among the open streams. Throws where there is none. */
  openStream(): void {
    this.#endSession?.();
    this.#endSession = this.#options.streams.open(this.#session, this.#ended());
  }

  /** For an exchange that may last: costs next to nothing if it does not. */
  session(): void {
    this.#endSession ??= this.#options.streams.watch(this.#session, this.#ended());
  }

  /** For an exchange that lasts already. */
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
