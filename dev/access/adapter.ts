// The storage adapter of oidc-provider for one realm. Reads the predefined clients from the realm's definition. All
// other entities are in the entity store.
import type { Adapter, AdapterFactory, ClientMetadata } from 'oidc-provider';
import type { EntityStore } from './entity-store.ts';
import type { Realm, RealmClient } from './realm.ts';

export function createAdapterFactory(realm: Realm, store: EntityStore): AdapterFactory {
  const { name } = realm.definition;
  return (kind): Adapter => ({
    upsert: (id, payload, lifetime) => store.save({ realm: name, kind, id }, payload, lifetime),
    find: async (id) => {
      const client = kind === 'Client' ? realm.client(id) : undefined;
      return client ? clientMetadata(client) : store.find({ realm: name, kind, id });
    },
    findByUid: (uid) => store.findByUid(name, kind, uid),
    // Only device codes have user codes, and the device flow is disabled.
    findByUserCode: async () => undefined,
    consume: (id) => store.consume({ realm: name, kind, id }),
    destroy: (id) => store.remove({ realm: name, kind, id }),
    revokeByGrantId: (grantId) => store.removeByGrant(name, kind, grantId),
  });
}

function clientMetadata(client: RealmClient): ClientMetadata {
  return {
    client_id: client.clientId,
    ...(client.secret !== undefined && { client_secret: client.secret }),
    token_endpoint_auth_method: client.secret === undefined ? 'none' : 'client_secret_basic',
    grant_types: client.grants,
    response_types: client.grants.includes('authorization_code') ? ['code'] : [],
    redirect_uris: client.redirectUris ?? [],
    post_logout_redirect_uris: client.postLogoutRedirectUris ?? [],
  };
}
