// Sessions of the caller and, for administrators, of the tenant: who is signed in, and a button that ends a session.
import { asProblem, problemOf } from '../api/problem.ts';
import { type ApiRequest, path } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { type Load, Loaded, useLoad } from '../elements/loaded.tsx';
import { LoadedList, onThisPage, PageLinks } from '../elements/loaded-list.tsx';
import { Page } from '../elements/page.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { RoleNeeded } from '../elements/role-needed.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { addressOfPage, type Place } from '../location.ts';
import { type Session, tokenHandler } from '../session/session.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';

/** The sessions of the caller are in both lists, so the end of a session changes both. */
export function SessionList({ place }: { place: Place }) {
  const isAdministrator = useRole('token-handler-admin');
  const after = place.query.get('after') ?? '';
  const own = useLoad('own', () => callOwn<Session[]>('GET', '/token-handler/sessions'));
  const ofTenant = useLoad(`${isAdministrator} ${after}`, async () =>
    isAdministrator ? send<Session[]>(listRequest(after)) : [],
  );
  const onEnded = () => {
    own.reload();
    ofTenant.reload();
  };
  return (
    <Page title="Sessions">
      <OwnSessions load={own} onEnded={onEnded} />
      <h2>Sessions of the tenant</h2>
      {isAdministrator ? (
        <TenantSessions {...{ load: ofTenant, after, onEnded }} />
      ) : (
        <RoleNeeded roles={['token-handler-admin']} to="see and end the sessions of others" />
      )}
    </Page>
  );
}

interface ListProps {
  load: Load<Session[]>;
  onEnded(): void;
}

function OwnSessions({ load, onEnded }: ListProps) {
  const end = (id: string) => callOwn('DELETE', `/token-handler/sessions/${encodeURIComponent(id)}`);
  return (
    <section aria-labelledby="own-title">
      <h2 id="own-title">Your sessions</h2>
      <Loaded load={load}>
        {(sessions) => <Sessions caption="Your sessions" sessions={sessions} end={end} onEnded={onEnded} />}
      </Loaded>
    </section>
  );
}

/**
 * The cookie identifies the caller's own sessions, so these requests go to the token handler itself, not to a target.
 */
async function callOwn<T>(method: string, url: string): Promise<T> {
  try {
    const response = await tokenHandler().fetch(url, { method });
    if (!response.ok) throw await problemOf(response);
    return (await response.json()) as T;
  } catch (error) {
    throw asProblem(error);
  }
}

const pageSize = 25;

const listRequest = (after: string): ApiRequest => ({
  target: 'token-handler',
  path: '/token-handler/v1/sessions',
  query: { top: pageSize, after },
});

const endRequest = (id: string): ApiRequest => ({
  target: 'token-handler',
  path: path`/token-handler/v1/sessions/${id}`,
  method: 'DELETE',
});

interface TenantProps extends ListProps {
  /** Id of the session after which the shown page begins; empty at the first page. */
  after: string;
}

function TenantSessions({ load, after, onEnded }: TenantProps) {
  const { tenant } = useSignedIn();
  const at = (next: string) => addressOfPage(tenant, ['sessions'], new URLSearchParams(next && { after: next }));
  return (
    <>
      <LoadedList load={load} page={after} textOf={({ length }) => onThisPage(length, 'session')}>
        {(sessions) => (
          <>
            <Sessions
              caption="Sessions of the tenant"
              sessions={sessions}
              end={(id) => send(endRequest(id))}
              onEnded={onEnded}
            />
            <PageLinks after={after} next={sessions.length === pageSize ? sessions.at(-1)?.id : null} at={at} />
          </>
        )}
      </LoadedList>
      <Curl request={listRequest(after)} label="Sessions as a curl command" />
      <Curl request={endRequest('id')} label="End a session as a curl command" />
    </>
  );
}

interface Props {
  caption: string;
  sessions: readonly Session[];
  end(id: string): Promise<unknown>;
  onEnded(): void;
}

function Sessions({ caption, sessions, end, onEnded }: Props) {
  const { session: mine } = useSignedIn();
  const announce = useAnnounce();
  const action = useAction();
  const press = ({ id, name }: Session) =>
    action.run(async () => {
      await end(id);
      announce(`The session of ${name} has ended.`);
      onEnded();
    });
  return (
    <>
      <Table
        caption={caption}
        hidesCaption
        empty="Nobody is signed in."
        columns={['Person', 'Client', 'Signed in', 'Ends', 'Action']}
        rows={sessions.map((session) => ({
          key: session.id,
          cells: [
            session.email ? `${session.name} (${session.email})` : session.name,
            session.clientId,
            <Time key="created" at={session.created} />,
            <Time key="expiry" at={session.expiry} />,
            session.id === mine.id ? (
              'This session'
            ) : (
              <End key="end" session={session} isBusy={action.isBusy} onEnd={() => void press(session)} />
            ),
          ],
        }))}
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}

function End({ session, isBusy, onEnd }: { session: Session; isBusy: boolean; onEnd(): void }) {
  return (
    <button type="button" class="link" aria-disabled={isBusy} onClick={onEnd}>
      End
      <span class="hidden">
        {' '}
        the session of {session.name} with {session.clientId}
      </span>
    </button>
  );
}
