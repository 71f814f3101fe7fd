// Finds and publishes definitions in the configuration service.
import { ApiProblem } from '../api/problem.ts';
import { send, sendOptional } from '../api/send.ts';
import {
  type ConfigurationDocument,
  definitionIn,
  documentRequest,
  type Located,
  operationRequest,
  type Revision,
} from './definition.ts';

/**
 * Finds the definition that forms use. The collection has precedence over a separate document. Throws ApiProblem 404 if
 * there is no definition.
 */
export async function locate(id: string): Promise<Located> {
  for (const source of ['collection', 'document'] as const) {
    const document = await sendOptional<ConfigurationDocument>(documentRequest(id, source));
    const definition = document?.latest && definitionIn(document.latest.configuration, id, source);
    if (document?.latest && definition)
      return { id, source, definition, latest: document.latest.revision, active: document.active?.revision };
  }
  throw new ApiProblem(404, { detail: 'The tenant has no form definition with this id.' });
}

/**
 * Freezes the current state as a revision, lets forms use that revision, and returns its number. Later changes edit the
 * next revision. Throws ApiProblem 412 if somebody has changed or published the definition since it was located.
 */
export async function publish(located: Located): Promise<number> {
  const { id, source } = located;
  if (stateOf(await locate(id)) !== stateOf(located))
    throw new ApiProblem(412, {
      detail:
        'Somebody has changed or published this definition since you opened it. Load the page again, check the definition, and then publish it.',
    });
  const created = await send<{ latest: Revision }>(operationRequest(id, source, { operation: 'CREATE-REVISION' }));
  // The service returns the new revision; the revision before it is now frozen. If somebody else published at the same
  // moment, the page shows a different revision.
  const revision = created.latest.revision - 1;
  await send(operationRequest(id, source, { operation: 'SET-ACTIVE-REVISION', revision }));
  return revision;
}

const stateOf = ({ source, definition, latest }: Located) => JSON.stringify([source, latest, definition]);
