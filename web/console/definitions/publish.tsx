// Publishes the current state of a definition: freezes it as a revision, and lets forms use that revision.
import { Curl } from '../elements/curl.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { useAction } from '../elements/use-action.ts';
import { publish } from './configuration.ts';
import { type Located, operationRequest } from './definition.ts';

interface Props {
  located: Located;
  /** True while the page loads the definition again, after which `located` may be different. */
  isLoading: boolean;
  onChanged(text: string): void;
}

export function Publish({ located, isLoading, onChanged }: Props) {
  const { id, source, latest } = located;
  const action = useAction();
  const press = async () => {
    if (isLoading) return;
    await action.run(async () => onChanged(`Revision ${await publish(located)} is published: forms use it.`));
  };
  return (
    <section aria-labelledby="publish-title">
      <h2 id="publish-title">Publish</h2>
      <div class="action">
        <p>
          Freezes what is saved as revision {latest}, and lets forms use it. Later changes wait until they are
          published.
        </p>
        <button type="button" class="button" aria-disabled={action.isBusy || isLoading} onClick={() => void press()}>
          Publish
        </button>
        <Curl
          request={operationRequest(id, source, { operation: 'CREATE-REVISION' })}
          label="Publish, first step, as a curl command"
        />
        <Curl
          request={operationRequest(id, source, { operation: 'SET-ACTIVE-REVISION', revision: latest })}
          label="Publish, second step, as a curl command"
        />
        {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      </div>
    </section>
  );
}
