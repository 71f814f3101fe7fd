// Ends a process on SIGTERM and SIGINT while it has no handlers of its own. In a container, the process has the id 1,
// and Linux ignores a signal to that process if the process has no handler for it.
import { constants } from 'node:os';

const signals = ['SIGTERM', 'SIGINT'] as const;

/** Exits on a signal with 128 plus its number, as a shell reports it, until the returned function is called. */
export function endOnSignals(): () => void {
  const end = (signal: NodeJS.Signals) => process.exit(128 + constants.signals[signal]);
  for (const signal of signals) process.on(signal, end);
  return () => {
    for (const signal of signals) process.off(signal, end);
  };
}
