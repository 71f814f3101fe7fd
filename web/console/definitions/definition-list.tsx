// Lists all form definitions of the tenant, and lets an administrator create one.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { Table } from '../elements/table.tsx';
import { type DefinitionName, definitionsRequest, type DefinitionList as List } from '../forms/form.ts';
import { addressOfPage } from '../location.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';
import { DefinitionCreate } from './definition-create.tsx';

export function DefinitionList() {
  const { tenant } = useSignedIn();
  const mayConfigure = useRole('configuration-admin');
  const load = useLoad('definitions', () => send<List>(definitionsRequest));
  return (
    <Page title="Definitions">
      <p>A form definition says who may apply, what the form asks, and how long drafts are kept.</p>
      <Loaded load={load}>
        {({ results, truncated }) => (
          <>
            {truncated && <p>Only the first {results.length} definitions are listed.</p>}
            <Table
              caption="Form definitions"
              hidesCaption
              empty="The tenant has no form definitions."
              columns={['Name', 'Id', 'Applicants', 'Configured in']}
              rows={results.map((definition) => ({ key: definition.id, cells: cellsOf(definition, tenant) }))}
            />
          </>
        )}
      </Loaded>
      <Curl request={definitionsRequest} label="This list as a curl command" />
      {mayConfigure && <DefinitionCreate tenant={tenant} />}
    </Page>
  );
}

function cellsOf({ id, name, anonymousApply, source }: DefinitionName, tenant: string) {
  return [
    <a key="name" href={addressOfPage(tenant, ['definitions', id])}>
      {name}
    </a>,
    id,
    anonymousApply ? 'also without an account' : 'with an account',
    source === 'collection' ? 'the collection' : 'a separate document',
  ];
}
