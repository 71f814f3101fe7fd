// Limits the time that an upstream may take to begin its response to one request. It reports a wait of one second, too.

export interface Waits {
  /** Called once, after a second. */
  onLong(): void;
  /** Called when the time is up. Returning false starts it again. */
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
