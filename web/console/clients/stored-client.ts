// Reads a client from the tenant's own document. The token handler's list may be minutes old and omits invalid clients.
// The document contains the last saved state.
import { sendOptional } from '../api/send.ts';
import { type ClientDocument, type ClientEntry, documentRequest } from './client.ts';

/** Resolves to undefined if the tenant has no client with this id. Throws ApiProblem. */
export async function storedEntry(id: string): Promise<ClientEntry | undefined> {
  const document = await sendOptional<ClientDocument>(documentRequest);
  const { clients = {}, ...top } = document?.latest?.configuration ?? {};
  const entries = { ...top, ...clients } as Record<string, ClientEntry>;
  return Object.hasOwn(entries, id) ? entries[id] : undefined;
}
