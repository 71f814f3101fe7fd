// A memory budget for reading on from clients whose upstream does not read. A closed connection is noticed only after its data
// was read (RFC 9293 section 3.10.4), so a proxy that stops reading does not notice it. All bodies of the process share the
// budget; a body that gets nothing from it ends with UPSTREAM_TIMEOUT.

export interface ReadAhead {
  /** Bytes that a body may read on, in addition to the `held` bytes it has; 0 if a budget is used up. Give them back. */
  take(held: number): number;
  giveBack(bytes: number): void;
}

const mebibyte = 1_048_576;
const budget = 64 * mebibyte;
const budgetOfBody = 16 * mebibyte;
const step = 2 * mebibyte;

export function createReadAhead(): ReadAhead {
  let left = budget;
  return {
    take(held) {
      if (left < step || held >= budgetOfBody) return 0;
      left -= step;
      return step;
    },
    giveBack(bytes) {
      left += bytes;
    },
  };
}
