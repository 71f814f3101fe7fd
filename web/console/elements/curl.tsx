// Shows a request as a curl command, with a button that copies it.
import { useState } from 'preact/hooks';
import { curlOf } from '../api/curl.ts';
import type { ApiRequest } from '../api/request.ts';
import { Code } from './code.tsx';

/** `request` must not contain secrets: callers replace them with `…`. */
export function Curl({ request, label = 'As a curl command' }: { request: ApiRequest; label?: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="curl" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && <Command request={request} label={label} />}
    </details>
  );
}

/** The command is built only while it is shown: it contains the whole body, such as a large CSV table. */
function Command({ request, label }: { request: ApiRequest; label: string }) {
  const [copied, setCopied] = useState<'no' | 'yes' | 'failed'>('no');
  const command = curlOf(request);
  const copy = () =>
    navigator.clipboard.writeText(command).then(
      () => setCopied('yes'),
      () => setCopied('failed'),
    );
  return (
    <>
      <Code label={label} text={command} />
      <p>
        <button type="button" class="button quiet" onClick={() => void copy()}>
          Copy
        </button>{' '}
        <span role="status">
          {copied === 'yes' && 'Copied'}
          {copied === 'failed' && 'The browser did not allow copying. Select the text and copy it.'}
        </span>
      </p>
      <p class="quiet">
        <code>$TOKEN</code> stands for an access token that you get from the identity provider; the console has none.
      </p>
    </>
  );
}
