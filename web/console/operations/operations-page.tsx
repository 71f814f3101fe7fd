// The state of the form service: reconciler, quarantine, outbox and limits.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { Facts, Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import type { Place } from '../location.ts';
import { type Count, type Operations, operationsRequest, type Run } from './operations.ts';
import { Quarantine } from './quarantine.tsx';

export function OperationsPage({ place }: { place: Place }) {
  const load = useLoad('operations', () => send<Operations>(operationsRequest));
  return (
    <Page title="Operations">
      <Loaded load={load}>
        {(operations) => (
          <>
            <p>
              {operations.scope === 'tenant' ? 'The share of this tenant' : 'All tenants'}, as of{' '}
              <Time at={operations.asOf} />{' '}
              <button type="button" class="link" onClick={() => load.reload()}>
                Read again
              </button>
            </p>
            <Overview operations={operations} />
            <Runs operations={operations} />
            <Limits limits={operations.limits} />
          </>
        )}
      </Loaded>
      <Curl request={operationsRequest} label="This state as a curl command" />
      <Quarantine after={place.query.get('after') ?? ''} />
    </Page>
  );
}

function countText(found: Count | null): string {
  if (found === null) return 'Counted for one tenant only';
  return found.isMinimum ? `${found.count} or more` : String(found.count);
}

function storageText({ bytes, limit }: NonNullable<Operations['storage']>): string {
  return `${mebibytes(bytes)} of ${mebibytes(limit)} MiB`;
}

const mebibytes = (bytes: number) => Math.ceil(bytes / 1_048_576).toLocaleString('en');

function Overview({ operations: { overdue, outbox, quarantine, storage, coreClients } }: { operations: Operations }) {
  return (
    <Facts
      facts={[
        ['Undelivered events and calls', countText(outbox)],
        ['Oldest undelivered', <Time key="outbox" at={outbox.oldest} none="None" />],
        ['Drafts overdue for a warning, lock or deletion', countText(overdue.drafts)],
        ['Oldest overdue draft', <Time key="overdue" at={overdue.oldest} none="None" />],
        ['Deletions overdue', countText(overdue.deletions)],
        ['Items in quarantine', countText(quarantine)],
        ['Of these released', quarantine.released],
        ...(storage ? [['Storage of the forms', storageText(storage)] as const] : []),
        ...Object.entries(coreClients ?? {}).map(([name, count]) => [`Core clients: ${name}`, count] as const),
      ]}
    />
  );
}

const outcomes = { succeeded: 'Succeeded', failed: 'Failed', stopped: 'Stopped' };

function Runs({ operations: { reconciler } }: { operations: Operations }) {
  return (
    <section aria-labelledby="runs-title">
      <h2 id="runs-title">Runs of the reconciler</h2>
      <p>
        Last expiry of drafts that succeeded: <Time at={reconciler.lastSuccess.expire} none="never" />
        <br />
        Last update of core clients that succeeded: <Time at={reconciler.lastSuccess.clients} none="never" />
      </p>
      <Table
        caption="Runs, newest first"
        hidesCaption
        empty="The reconciler has not run yet."
        columns={['Started', 'Finished', 'Outcome', 'Expiry', 'Core clients', 'Counts']}
        rows={reconciler.runs.map((run) => ({
          key: run.started,
          cells: [
            <Time key="started" at={run.started} />,
            <Time key="finished" at={run.finished} />,
            outcomes[run.outcome] ?? run.outcome,
            yesNo(run.expirySucceeded),
            yesNo(run.clientsSucceeded),
            countsOf(run),
          ],
        }))}
      />
    </section>
  );
}

function yesNo(succeeded: boolean | null): string {
  if (succeeded === null) return 'Not included';
  return succeeded ? 'Succeeded' : 'Failed';
}

/** The counts cover all tenants, so only operators of the realm `core` see them. */
function countsOf({ counts }: Run): string {
  if (counts === null) return 'For core operators only';
  return Object.entries(counts)
    .map(([name, count]) => `${name}: ${typeof count === 'object' ? JSON.stringify(count) : count}`)
    .join(', ');
}

function Limits({ limits: { pod, since, refused } }: { limits: Operations['limits'] }) {
  return (
    <section aria-labelledby="limits-title">
      <h2 id="limits-title">Limits reached</h2>
      <p>
        Since <Time at={since} />, pod {pod} has refused these requests. Other pods count for themselves.
      </p>
      <Table
        caption="Limits reached"
        hidesCaption
        empty="No limit was reached."
        columns={['Request', 'Status', 'Refused', 'Last']}
        rows={refused.map(({ method, route, status, count, last }) => ({
          key: `${method} ${route} ${status}`,
          cells: [`${method} ${route}`, status, count, <Time key="last" at={last} />],
        }))}
      />
    </section>
  );
}
