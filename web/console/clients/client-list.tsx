// The clients of the tenant, and the core clients that every tenant may register.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { RoleNeeded } from '../elements/role-needed.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { addressOfPage, go } from '../location.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';
import { type Client, listRequest } from './client.ts';
import { ClientForm } from './client-form.tsx';

export function ClientList() {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const mayConfigure = useRole('configuration-admin');
  const load = useLoad('clients', loadClients);
  return (
    <Page title="Clients">
      <p>A client is a frontend that signs people in through the token handler.</p>
      <Loaded load={load}>{(clients) => <Clients clients={clients} tenant={tenant} />}</Loaded>
      <Curl request={listRequest(false)} label="This list as a curl command" />
      <details>
        <summary>Create a client</summary>
        {mayConfigure ? (
          <ClientForm
            stored={undefined}
            onSaved={(id) => {
              go(addressOfPage(tenant, ['clients', id]));
              announce(`The client ${id} was created. Register it, so that people can sign in.`);
            }}
          />
        ) : (
          <RoleNeeded roles={['configuration-admin']} to="create a client" />
        )}
      </details>
    </Page>
  );
}

/** Loads all clients, without duplicates: the tenant's list may contain core clients too. */
export async function loadClients(): Promise<Client[]> {
  const lists = await Promise.all([send<Client[]>(listRequest(false)), send<Client[]>(listRequest(true))]);
  return [...new Map(lists.flat().map((client) => [client.id, client])).values()];
}

function Clients({ clients, tenant }: { clients: readonly Client[]; tenant: string }) {
  return (
    <Table
      caption="Clients"
      hidesCaption
      empty="There are no clients."
      columns={['Name', 'Id', 'Configured by', 'Registered']}
      rows={clients.map(({ id, name, core, registration }) => ({
        key: id,
        cells: [
          <a key="name" href={addressOfPage(tenant, ['clients', id])}>
            {name}
          </a>,
          id,
          core ? 'the operator (core client)' : 'this tenant',
          registration ? <Time key="time" at={registration.registeredAt} /> : 'No: nobody can sign in',
        ],
      }))}
    />
  );
}
