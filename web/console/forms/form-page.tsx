// The page of one form: its status, dates, applicant, data, history and actions.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Facts } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { addressOfPage, go } from '../location.ts';
import { useSignedIn } from '../session/session-context.ts';
import { type DefinitionList, definitionsRequest, type Form, formRequest, nameOf } from './form.ts';
import { FormActions } from './form-actions.tsx';
import { FormData } from './form-data.tsx';
import { FormHistory } from './form-history.tsx';
import { addressOfList, StatusTag } from './form-list.tsx';

export function FormPage({ id }: { id: string }) {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const [version, setVersion] = useState(0);
  const load = useLoad(id, () => send<Form>(formRequest(id)));
  const list = addressOfList(tenant);
  return (
    <Page title={`Form ${id}`} back={{ href: list, text: 'Forms' }}>
      <Loaded load={load}>
        {(form) => (
          <>
            <FormFacts form={form} tenant={tenant} />
            <Curl request={formRequest(id)} label="This form as a curl command" />
            <FormActions
              form={form}
              onChanged={(next, text) => {
                load.set(next);
                setVersion(version + 1);
                announce(text);
              }}
              onDeleted={() => {
                go(list);
                announce(`Form ${id} was deleted.`);
              }}
            />
            <FormData form={form} />
            <FormHistory id={id} version={version} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function FormFacts({ form, tenant }: { form: Form; tenant: string }) {
  const definitions = useLoad('definitions', () => send<DefinitionList>(definitionsRequest));
  return (
    <Facts
      facts={[
        ['Status', <StatusTag key="status" form={form} />],
        [
          'Definition',
          <a key="definition" href={addressOfPage(tenant, ['definitions', form.definitionId])}>
            {nameOf(form.definitionId, definitions.value)}
          </a>,
        ],
        ['Applicant', applicantText(form)],
        ['Created', <Created key="created" form={form} />],
        ['Last access', <Time key="access" at={form.lastAccessed} />],
        ['Submitted', <Time key="submitted" at={form.submitted} none="Not yet" />],
        ['Locked', <Time key="locked" at={form.locked} none="No" />],
        ['Will be locked', <Time key="lock" at={form.lockOn} none="No date" />],
        ['Will be deleted', <Time key="delete" at={form.deleteOn} none="No date" />],
        ...(form.held ? [['On hold', holdText(form)] as const] : []),
      ]}
    />
  );
}

function Created({ form }: { form: Form }) {
  return (
    <>
      <Time at={form.created} /> by {form.createdBy.name}
    </>
  );
}

function holdText({ hold }: Form): string {
  return hold ? `by ${hold.by.name}, ${hold.reason ?? 'no reason given'}` : 'Yes';
}

function applicantText({ applicant, anonymousApplicant }: Form): string {
  const account = anonymousApplicant ? 'without an account' : 'with an account';
  const channels = (applicant.channels ?? []).map(({ channel, address }) => `${channel} ${address}`);
  return [applicant.addressAs, account, ...channels].filter(Boolean).join(', ');
}
