// The page of one register: its entries, import, revisions, references and deletion.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { ConfirmButton } from '../elements/confirm-button.tsx';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { addressOfPage, go } from '../location.ts';
import { useSignedIn } from '../session/session-context.ts';
import { EntryTable } from './entry-table.tsx';
import { ImportCsv } from './import-csv.tsx';
import { deleteRequest, type FoundReferences, type Register, referencesRequest, registerRequest } from './register.ts';
import { References } from './register-references.tsx';
import { RegisterRevisions } from './register-revisions.tsx';

export function RegisterPage({ name }: { name: string }) {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const [version, setVersion] = useState(0);
  const load = useLoad(name, () => send<Register>(registerRequest(name)));
  const changed = (text: string) => {
    load.reload();
    setVersion(version + 1);
    announce(text);
  };
  const list = addressOfPage(tenant, ['registers']);
  return (
    <Page title={name} back={{ href: list, text: 'Registers' }}>
      <Loaded load={load}>
        {(register) => (
          <>
            {register.description && <p>{register.description}</p>}
            <EntryTable register={register} isLoading={load.isLoading} onChanged={changed} />
            <Curl request={registerRequest(name)} label="This register as a curl command" />
            <ImportCsv register={register} onChanged={changed} />
            <RegisterRevisions name={name} version={version} onChanged={changed} />
            <ReferencesOf name={name} tenant={tenant} />
            <h2>Delete</h2>
            <ConfirmButton
              id="delete-register"
              label="Delete this register"
              warning="Form definitions that name it lose their choices. Form data is unchanged."
              word={name}
              request={deleteRequest(name)}
              onDone={() => {
                go(list);
                announce(`The register ${name} was deleted.`);
              }}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function ReferencesOf({ name, tenant }: { name: string; tenant: string }) {
  const load = useLoad(name, () => send<FoundReferences>(referencesRequest(name)));
  return (
    <section aria-labelledby="references-title">
      <h2 id="references-title">References</h2>
      <Loaded load={load}>
        {(found) => <References found={found} tenant={tenant} empty="No form definition names this register." />}
      </Loaded>
      <Curl request={referencesRequest(name)} label="References as a curl command" />
    </section>
  );
}
