// Finds and publishes definitions in the configuration service.
import { ApiProblem } from '../api/problem.ts';
import { send, sendOptional } from '../api/send.ts';
import {
  type ConfigurationDocument,
  definitionIn,
  documentRequest,
  type Located,
  operationRequest,
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

/** Freezes the current state as a revision, and lets forms use that revision. Later changes edit the next revision. */
export async function publish({ id, source, latest }: Located): Promise<void> {
  await send(operationRequest(id, source, { operation: 'CREATE-REVISION' }));
  await send(operationRequest(id, source, { operation: 'SET-ACTIVE-REVISION', revision: latest }));
}
