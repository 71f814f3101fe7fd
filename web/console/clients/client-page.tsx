// The page of one client: its configuration, its registration at the identity provider, and leftovers.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { RoleNeeded } from '../elements/role-needed.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Facts, Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { addressOfPage } from '../location.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';
import { type Client, configuredClient, type Leftover, leftoversRequest, listRequest } from './client.ts';
import { ClientForm } from './client-form.tsx';
import { loadClients } from './client-list.tsx';
import { ClientRegistration } from './client-registration.tsx';
import { storedEntry } from './stored-client.ts';

export function ClientPage({ id }: { id: string }) {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const mayConfigure = useRole('configuration-admin');
  const load = useLoad(id, () => loadClient(id, mayConfigure));
  const changed = (text: string) => {
    load.reload();
    announce(text);
  };
  return (
    <Page title={id} back={{ href: addressOfPage(tenant, ['clients']), text: 'Clients' }}>
      <Loaded load={load}>
        {({ client, isListed }) => (
          <>
            {!isListed && <NotListed />}
            {client && <Shown client={client} onChanged={changed} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

interface LoadedClient {
  client: Client | undefined;
  /** False if the token handler does not list the client, because the client is too new or invalid. */
  isListed: boolean;
}

/**
 * Loads a client from the token handler's list, which may be minutes old. A client that is not in the list is loaded
 * from the configuration of the tenant.
 */
async function loadClient(id: string, mayConfigure: boolean): Promise<LoadedClient> {
  const found = (await loadClients()).find((one) => one.id === id);
  if (found || !mayConfigure) return { client: found, isListed: found !== undefined };
  const entry = await storedEntry(id);
  return { client: entry && configuredClient(id, entry), isListed: false };
}

function NotListed() {
  return (
    <p class="note">
      The token handler does not list this client. One that was just configured appears within a minute. If it does not,
      its configuration is not valid: check the redirect URIs and targets.
    </p>
  );
}

interface ShownProps {
  client: Client;
  onChanged(text: string): void;
}

function Shown({ client, onChanged }: ShownProps) {
  return (
    <>
      <Facts
        facts={[
          ['Name', client.name],
          ['Description', client.description ?? '–'],
          ['Configured by', client.core ? 'the operator (core client)' : 'this tenant'],
          ['Redirect URIs', <List key="uris" items={client.redirectUris} />],
          ['Targets', <List key="targets" items={client.targets.map(({ id, upstream }) => `${id}: ${upstream}`)} />],
          ['Sign-out at the identity provider', client.keycloakLogout ? 'Yes' : 'No'],
        ]}
      />
      <Curl request={listRequest(client.core)} label="Clients as a curl command" />
      <EditClient client={client} onChanged={onChanged} />
      <ClientRegistration client={client} onChanged={onChanged} />
      <Leftovers id={client.id} />
    </>
  );
}

function List({ items }: { items: readonly string[] }) {
  if (items.length === 0) return <>None</>;
  return (
    <ul class="plain-list">
      {items.map((item) => (
        <li key={item}>{item}</li>
      ))}
    </ul>
  );
}

function EditClient({ client, onChanged }: ShownProps) {
  const mayConfigure = useRole('configuration-admin');
  if (client.core) return <p class="note">Core clients are configured by the operator, for all tenants.</p>;
  return (
    <details>
      <summary>Edit this client</summary>
      {mayConfigure ? (
        <StoredClient
          id={client.id}
          onSaved={() => onChanged('The client was saved. The token handler uses it within a minute.')}
        />
      ) : (
        <RoleNeeded roles={['configuration-admin']} to="edit a client" />
      )}
    </details>
  );
}

/** Loads the stored client before the person edits it, because a save replaces all members that have a field. */
function StoredClient({ id, onSaved }: { id: string; onSaved(): void }) {
  const load = useLoad(id, async () => ({ entry: await storedEntry(id) }));
  return (
    <Loaded load={load}>
      {({ entry }) =>
        entry ? (
          <ClientForm key={id} stored={{ id, entry }} onSaved={onSaved} />
        ) : (
          <p class="note">This client is no longer in the tenant’s configuration.</p>
        )
      }
    </Loaded>
  );
}

const reasons: Record<string, string> = {
  'response-lost': 'The registration got no response, so this client may not exist.',
  'token-lost': 'It was replaced, and the token that could delete it was lost.',
  'token-refused': 'It was replaced, and the identity provider refused to delete it.',
  'no-token': 'It was replaced, and the identity provider gave no token to delete it.',
  'deletion-pending': 'It was replaced; the token handler will delete it.',
};

function Leftovers({ id }: { id: string }) {
  const load = useLoad(id, () => send<Leftover[]>(leftoversRequest(id)));
  return (
    <section aria-labelledby="leftovers-title">
      <h2 id="leftovers-title">Leftovers at the identity provider</h2>
      <p>
        Clients that a registration may have created and that nothing manages. Delete them at the identity provider.
      </p>
      <Loaded load={load}>
        {(leftovers) => (
          <Table
            caption="Leftovers"
            hidesCaption
            columns={['Name', 'Id', 'Realm', 'Why', 'Since']}
            rows={leftovers.map(({ clientName, clientId, realm, reason, created }) => ({
              key: clientName + created,
              cells: [
                clientName,
                clientId ?? 'unknown',
                realm,
                reasons[reason] ?? reason,
                <Time key="time" at={created} />,
              ],
            }))}
          />
        )}
      </Loaded>
      <Curl request={leftoversRequest(id)} label="Leftovers as a curl command" />
    </section>
  );
}
