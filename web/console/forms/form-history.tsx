// Shows what happened to a form, when, and who did it: a role and a pseudonym of the account. The history has no names,
// and is erased with the form.
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { type Row, Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { historyRequest } from './form.ts';

interface Entry {
  event: string;
  time: string;
  by: { role: string | null; account: string | null; isCaller: boolean };
}

const events: Record<string, string> = {
  created: 'Created',
  submitted: 'Submitted',
  unlocked: 'Unlocked',
  archived: 'Archived',
  'to-draft': 'Returned to draft',
  held: 'Put on hold',
  released: 'Released',
  'code-sent': 'Code sent to the applicant',
  warned: 'Applicant warned',
  locked: 'Locked',
};

const roles: Record<string, string> = {
  admin: 'an administrator',
  intake: 'an intake application',
  applicant: 'the applicant',
  clerk: 'a clerk',
  assessor: 'an assessor',
  creator: 'the creator',
  system: 'the system',
};

/** `version` changes after each action on the form, and the history is then loaded again. */
export function FormHistory({ id, version }: { id: string; version: number }) {
  const load = useLoad(id, () => send<{ results: Entry[]; truncated: boolean }>(historyRequest(id)), version);
  return (
    <section aria-labelledby="history-title">
      <h2 id="history-title">History</h2>
      <Loaded load={load}>
        {({ results, truncated }) => (
          <>
            {truncated && (
              <p>
                This history is full: a form keeps its first {firstEntries} entries and its latest {latestEntries}.
              </p>
            )}
            <Table
              caption="History, oldest first"
              hidesCaption
              columns={['What', 'When', 'By']}
              rows={rowsOf(results, truncated)}
            />
          </>
        )}
      </Loaded>
      <Curl request={historyRequest(id)} label="History as a curl command" />
    </section>
  );
}

/**
 * The numbers of entries that the service keeps for a form: the first ones and the latest ones. Entries between them
 * may be missing.
 */
const [firstEntries, latestEntries] = [20, 80];

function rowsOf(entries: readonly Entry[], truncated: boolean): Row[] {
  const rows = entries.map((entry, index) => ({
    key: String(index),
    cells: [events[entry.event] ?? entry.event, <Time key="time" at={entry.time} />, byText(entry)],
  }));
  const gap = { key: 'gap', cells: ['Entries may be missing here', '–', '–'] };
  return truncated ? rows.toSpliced(-latestEntries, 0, gap) : rows;
}

function byText({ by: { role, account, isCaller } }: Entry): string {
  const name = role === null ? 'unknown' : (roles[role] ?? role);
  if (isCaller) return `you, as ${name}`;
  return account === null ? name : `${name} (account ${account})`;
}
