// The page that operators of the realm `core` see instead of a sign-in. The token handler keeps no sessions for that
// realm: clients are registered in the realms of tenants, and each session belongs to a tenant (decision 0077).
import { Curl } from '../elements/curl.tsx';
import { PlainPage } from '../elements/plain-page.tsx';
import { filterOf, listRequest } from '../forms/form-filter.ts';
import { addressOfPage } from '../location.ts';
import { operationsRequest, quarantineRequest } from '../operations/operations.ts';

/** The realm of the platform itself. */
export const coreRealm = 'core';

const forms = listRequest(filterOf(new URLSearchParams()), '');

export function CorePage() {
  return (
    <PlainPage title="The console is for the administrators of tenants">
      <p>
        The realm core is not a tenant, so its operators cannot sign in here. They call the same services with an access
        token of the realm core:
      </p>
      <Curl request={operationsRequest} label="Operations of all tenants as a curl command" />
      <Curl request={quarantineRequest('')} label="Quarantine of all tenants as a curl command" />
      <Curl
        request={{
          ...forms,
          query: { ...forms.query, tenantId: 'urn:example:platform:tenant-service:v2:/tenants/ID' },
        }}
        label="Forms of one tenant as a curl command"
      />
      <p>
        Calls about one tenant name it in <code>tenantId</code>. For the state of all pods, use the metrics and the
        dashboards.
      </p>
      <p>To use the pages for a tenant, sign in with an account of its realm that has the roles.</p>
      <p class="quiet">
        <a href={addressOfPage('')}>Another tenant</a>
      </p>
    </PlainPage>
  );
}
