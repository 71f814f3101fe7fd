// The time that an upstream has to begin its response, for one request. A request that waits long is noticed on the way.

export interface Waits {
  /** Once, after a second. */
  onLong(): void;
  /** When the time is up. False starts it anew. */
  onLate(): boolean;
}

/** Milliseconds */
const long = 1_000;

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

  /** The time begins anew. */
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
