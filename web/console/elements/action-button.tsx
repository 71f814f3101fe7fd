// A button that sends one request, shows its failure, and shows the request as a curl command.
import type { ComponentChildren } from 'preact';
import type { ApiRequest } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from './curl.tsx';
import { ProblemBox } from './problem-box.tsx';
import { useAction } from './use-action.ts';

interface Props<T> {
  label: string;
  request: ApiRequest;
  /** Called with the body of the response. */
  onDone(body: T): void;
  /** A text that explains the button. */
  children?: ComponentChildren;
}

export function ActionButton<T>({ label, request, onDone, children }: Props<T>) {
  const action = useAction();
  const press = () => action.run(async () => onDone(await send<T>(request)));
  return (
    <div class="action">
      {children}
      <button type="button" class="button quiet" aria-disabled={action.isBusy} onClick={() => void press()}>
        {label}
      </button>
      <Curl request={request} label={`${label} as a curl command`} />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </div>
  );
}
