// Memory for reading on from clients whose upstream does not read. A client that closes its connection is noticed only behind
// the data that it has sent (RFC 9293 section 3.10.4), so a proxy that stops reading does not notice it. One budget for all
// bodies of the process; a body that gets nothing of it ends with UPSTREAM_TIMEOUT.

export interface ReadAhead {
  /** Bytes that a body may read on, besides the `held` that it has; 0 when a budget is used up. They are given back. */
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
