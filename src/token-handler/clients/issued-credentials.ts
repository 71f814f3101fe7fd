// The values that an identity provider issues when it registers a client (RFC 7591, RFC 7592). A tenant may choose the
// identity provider, so the values are limited to what can be stored.
import { z } from 'zod';

/**
 * RFC 6749, appendix A, allows only these characters in client ids, secrets and tokens; RFC 3986 allows a part of them
 * in URIs.
 */
const visible = /^[\x20-\x7e]+$/;
const text = (longest: number) => z.string().max(longest).regex(visible);

export const issuedSchema = z.object({
  client_id: text(500),
  client_secret: text(4_096),
  // RFC 7592 is optional. The client can be changed only if both members are present.
  registration_access_token: text(16_384).optional(),
  registration_client_uri: text(2_048).optional(),
});

/** The response to a change. A member that is missing has not changed. */
export const changedSchema = issuedSchema
  .partial()
  .extend({ client_id: issuedSchema.shape.client_id, redirect_uris: z.array(z.string()).default([]) });
