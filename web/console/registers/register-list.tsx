// Lists all registers of the tenant and the references to registers that do not exist. Lets an administrator create a
// register.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { LoadedList, onThisPage, PageLinks } from '../elements/loaded-list.tsx';
import type { ListPage } from '../elements/more-button.tsx';
import { Page } from '../elements/page.tsx';
import { Table } from '../elements/table.tsx';
import { addressOfPage, type Place } from '../location.ts';
import { deadReferences, type FoundReferences, listRequest, type Register } from './register.ts';
import { RegisterCreate } from './register-create.tsx';
import { References } from './register-references.tsx';

type List = ListPage<Register>;

export function RegisterList({ place }: { place: Place }) {
  const after = place.query.get('after') ?? '';
  const request = listRequest(after);
  const load = useLoad(after, () => send<List>(request));
  return (
    <Page title="Registers">
      <p>A register is a list of values behind the drop-downs of forms.</p>
      <LoadedList load={load} page={after} textOf={({ results }) => onThisPage(results.length, 'register')}>
        {(list) => <Registers list={list} tenant={place.tenant} after={after} />}
      </LoadedList>
      <Curl request={request} label="This list as a curl command" />
      <RegisterCreate tenant={place.tenant} />
      <DeadReferences tenant={place.tenant} />
    </Page>
  );
}

function Registers({ list: { results, page }, tenant, after }: { list: List; tenant: string; after: string }) {
  const at = (next: string) => addressOfPage(tenant, ['registers'], new URLSearchParams(next && { after: next }));
  return (
    <>
      <Table
        caption="Registers"
        hidesCaption
        empty="The tenant has no registers."
        columns={['Name', 'Description', 'Entries']}
        rows={results.map(({ name, description, entries }) => ({
          key: name,
          cells: [
            <a key="name" href={addressOfPage(tenant, ['registers', name])}>
              {name}
            </a>,
            description,
            entries.length,
          ],
        }))}
      />
      <PageLinks after={after} next={page.next} at={at} />
    </>
  );
}

function DeadReferences({ tenant }: { tenant: string }) {
  const load = useLoad('dead', () => send<FoundReferences>(deadReferences));
  return (
    <section aria-labelledby="dead-title">
      <h2 id="dead-title">References to registers that do not exist</h2>
      <Loaded load={load}>
        {(found) => <References found={found} tenant={tenant} empty="Every register that a form names exists." />}
      </Loaded>
    </section>
  );
}
