// Shows form data under the labels of the definition. The data is loaded only when a button is pressed, because reading
// the data of a draft sets the time of its last access, and because form data is personal.
import { useRef, useState } from 'preact/hooks';
import { send, sendOptional } from '../api/send.ts';
import { Code } from '../elements/code.tsx';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { dataRequest, definitionRequest, type Form, isIn } from './form.ts';
import { type Labelled, labelledData } from './labelled-data.ts';

export function FormData({ form }: { form: Form }) {
  const [isShown, setShown] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  return (
    <section aria-labelledby="data-title">
      <h2 id="data-title" tabIndex={-1} ref={heading}>
        Form data
      </h2>
      {!isShown && (
        <>
          {isIn(form, 'draft') && (
            <p class="note">
              Showing the data of a draft counts as access: the draft will be locked and deleted later than shown.
            </p>
          )}
          <button
            type="button"
            class="button quiet"
            onClick={() => {
              setShown(true);
              // The pressed button disappears.
              heading.current?.focus();
            }}
          >
            Show data
          </button>
        </>
      )}
      {isShown && <Shown form={form} />}
      <Curl request={dataRequest(form.id)} label="Form data as a curl command" />
    </section>
  );
}

interface Data {
  data: unknown;
  files: Record<string, unknown>;
}

function Shown({ form }: { form: Form }) {
  const load = useLoad(form.id, async () => {
    const [content, definition] = await Promise.all([
      send<Data>(dataRequest(form.id)),
      sendOptional<{ dataSchema?: unknown; uiSchema?: unknown }>(definitionRequest(form.definitionId)),
    ]);
    return { content, definition: definition ?? {} };
  });
  return (
    <Loaded load={load}>
      {({ content, definition }) => (
        <>
          <Values values={labelledData(content.data ?? {}, definition)} />
          <h3>Files</h3>
          <Values values={Object.entries(content.files ?? {}).map(([label, urn]) => ({ label, value: String(urn) }))} />
          <details>
            <summary>As JSON</summary>
            <Code label="Form data as JSON" text={JSON.stringify(content, undefined, 2)} />
          </details>
        </>
      )}
    </Loaded>
  );
}

function Values({ values }: { values: Labelled[] }) {
  if (values.length === 0) return <p>None.</p>;
  return (
    <dl class="facts">
      {values.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{typeof value === 'string' ? value : <Values values={value} />}</dd>
        </div>
      ))}
    </dl>
  );
}
