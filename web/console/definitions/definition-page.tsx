// The page of one form definition: the revision that forms use, the editor, publishing, revisions and deletion.
import { useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { Code } from '../elements/code.tsx';
import { ConfirmButton } from '../elements/confirm-button.tsx';
import { Curl } from '../elements/curl.tsx';
import { loadPart } from '../elements/load-part.ts';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { RoleNeeded } from '../elements/role-needed.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { definitionRequest } from '../forms/form.ts';
import { addressOfPage, go } from '../location.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';
import { locate } from './configuration.ts';
import { deleteRequest, documentRequest, type Located } from './definition.ts';
import { DefinitionRevisions } from './definition-revisions.tsx';
import { Publish } from './publish.tsx';

export function DefinitionPage({ id }: { id: string }) {
  const { tenant } = useSignedIn();
  const mayConfigure = useRole('configuration-admin');
  return (
    <Page title={id} back={{ href: addressOfPage(tenant, ['definitions']), text: 'Definitions' }}>
      {mayConfigure ? <Editable id={id} /> : <ReadOnly id={id} />}
    </Page>
  );
}

function Editable({ id }: { id: string }) {
  const { tenant } = useSignedIn();
  const announce = useAnnounce();
  const [version, setVersion] = useState(0);
  const load = useLoad(id, () => locate(id));
  const changed = (text: string) => {
    load.reload();
    setVersion(version + 1);
    announce(text);
  };
  return (
    <Loaded load={load}>
      {(located) => (
        <>
          <InUse located={located} />
          <Editor located={located} onChanged={changed} />
          <Publish located={located} isLoading={load.isLoading} onChanged={changed} />
          <DefinitionRevisions located={located} version={version} onChanged={changed} />
          <h2>Delete</h2>
          <ConfirmButton
            id="delete-definition"
            label="Delete this definition"
            warning="Nobody can create or submit forms of it any more. Existing forms are kept."
            word={id}
            request={deleteRequest(id, located.source)}
            onDone={() => {
              go(addressOfPage(tenant, ['definitions']));
              announce(`The form definition ${id} was deleted.`);
            }}
          />
        </>
      )}
    </Loaded>
  );
}

function InUse({ located: { id, source, latest, active } }: { located: Located }) {
  return (
    <>
      <p class="note">
        {active === undefined
          ? 'No revision is published: forms use each change as soon as it is saved.'
          : `Forms use the published revision ${active}. Changes edit revision ${latest}, and take effect when it is published.`}
        {active === latest && ' That is the same revision, so changes take effect as soon as they are saved.'}
        {source === 'collection' && ' It is part of the tenant’s collection, whose definitions are published together.'}
      </p>
      <Curl request={documentRequest(id, source)} label="This definition as a curl command" />
    </>
  );
}

interface EditorProps {
  located: Located;
  onChanged(text: string): void;
}

/** The editor is a separate file, which is loaded when a definition is opened. */
function Editor({ located, onChanged }: EditorProps) {
  const load = useLoad('editor', () => loadPart(() => import('./editor/definition-editor.tsx')));
  return (
    <Loaded load={load}>
      {({ DefinitionEditor }) => <DefinitionEditor located={located} onChanged={onChanged} />}
    </Loaded>
  );
}

function ReadOnly({ id }: { id: string }) {
  const load = useLoad(id, () => send<Record<string, unknown>>(definitionRequest(id)));
  return (
    <>
      <RoleNeeded roles={['configuration-admin']} to="edit and publish definitions" />
      <Loaded load={load}>
        {(definition) => (
          <Code label="The definition as forms use it" text={JSON.stringify(definition, undefined, 2)} />
        )}
      </Loaded>
      <Curl request={definitionRequest(id)} label="This definition as a curl command" />
    </>
  );
}
