// Tests how a failure is assigned to the phases of a run.
import { expect, it } from 'vitest';
import { createRecorder, Unserved } from './recorder.ts';

function begin(recorder: ReturnType<typeof createRecorder>) {
  const { promise, reject } = Promise.withResolvers<void>();
  const ended = recorder.measure('save', () => promise).catch(() => undefined);
  return () => {
    reject(new Unserved('no response'));
    return ended;
  };
}

it('a failed request belongs to every phase that it lived through, also if the first one has come back', async () => {
  const recorder = createRecorder();
  recorder.phase = 'calm';
  const long = begin(recorder);
  recorder.phase = 'fault';
  const short = begin(recorder);
  await short();
  recorder.phase = 'calm';
  await long();
  await begin(recorder)();
  expect(recorder.failures.map(({ phase }) => phase)).toEqual(['fault', 'calm + fault', 'calm']);
  expect(recorder.samples.map(({ phase }) => phase)).toEqual(['fault', 'calm', 'calm']);
});
