// Counts the changes that this process makes to forms. The reconciler counts its own changes in the records of its
// runs.
import prom from 'prom-client';
import type { Metrics } from '../../service/operations/metrics.ts';
import { type MoveOperation, operations } from './catalogue.ts';

export type Transition = 'created' | 'deleted' | (typeof operations)[MoveOperation]['recorded'];

const moves = Object.values(operations).filter((operation) => 'move' in operation);

/** Returns a function that counts one transition. Call it after the transition was committed. */
export function createFormMetrics({ registry }: Pick<Metrics, 'registry'>): (transition: Transition) => void {
  const transitions = new prom.Counter({
    name: 'formgate_form_transitions_total',
    help: 'Forms that callers created, deleted or gave another status, by transition',
    labelNames: ['transition'],
    registers: [registry],
  });
  const names: Transition[] = ['created', ...moves.map(({ recorded }) => recorded), 'deleted'];
  for (const transition of names) transitions.inc({ transition }, 0);
  return (transition) => transitions.inc({ transition });
}
