// The realms that the trial of docs/operations.md creates in Keycloak.
import { createAdminApi, type KeycloakServer } from './admin-api.ts';
import { ownMark } from './realm-representation.ts';

const realms = ['core', 'demo'];

/**
 * Deletes the realms. If `areOurs` is false, throws for a realm that no test has created, because a Keycloak given by
 * URL may contain other realms with these names.
 */
export async function removeTrialRealms(keycloak: KeycloakServer, { areOurs }: { areOurs: boolean }): Promise<void> {
  const admin = createAdminApi(keycloak);
  for (const realm of realms) {
    const present = (await admin.find(`/${realm}`)) as { attributes?: Record<string, string> } | undefined;
    if (present === undefined) continue;
    if (!areOurs && present.attributes?.[ownMark] !== 'true')
      throw new Error(`Tests did not create the realm ${realm}.`);
    await admin.call('DELETE', `/${realm}`);
  }
}
