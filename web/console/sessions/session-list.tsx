// Sessions of the caller and, for administrators, of the tenant: who is signed in, and a button that ends a session.
import { useState } from 'preact/hooks';
import { asProblem, problemOf } from '../api/problem.ts';
import { type ApiRequest, path } from '../api/request.ts';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { Loaded, useLoad } from '../elements/loaded.tsx';
import { Page } from '../elements/page.tsx';
import { ProblemBox } from '../elements/problem-box.tsx';
import { RoleNeeded } from '../elements/role-needed.tsx';
import { useAnnounce } from '../elements/status.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { useAction } from '../elements/use-action.ts';
import { type Session, tokenHandler } from '../session/session.ts';
import { useRole, useSignedIn } from '../session/session-context.ts';

export function SessionList() {
  const isAdministrator = useRole('token-handler-admin');
  return (
    <Page title="Sessions">
      <OwnSessions />
      <h2>Sessions of the tenant</h2>
      {isAdministrator ? (
        <TenantSessions />
      ) : (
        <RoleNeeded roles={['token-handler-admin']} to="see and end the sessions of others" />
      )}
    </Page>
  );
}

function OwnSessions() {
  const load = useLoad('own', () => callOwn<Session[]>('GET', '/token-handler/sessions'));
  const end = (id: string) => callOwn('DELETE', `/token-handler/sessions/${encodeURIComponent(id)}`);
  return (
    <section aria-labelledby="own-title">
      <h2 id="own-title">Your sessions</h2>
      <Loaded load={load}>
        {(sessions) => <Sessions caption="Your sessions" sessions={sessions} end={end} onEnded={() => load.reload()} />}
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

function TenantSessions() {
  const [after, setAfter] = useState('');
  const load = useLoad(after, () => send<Session[]>(listRequest(after)));
  return (
    <>
      <Loaded load={load}>
        {(sessions) => (
          <>
            <Sessions
              caption="Sessions of the tenant"
              sessions={sessions}
              end={(id) => send(endRequest(id))}
              onEnded={() => load.reload()}
            />
            <div class="actions">
              {after !== '' && (
                <button type="button" class="button quiet" onClick={() => setAfter('')}>
                  First page
                </button>
              )}
              {sessions.length === pageSize && (
                <button type="button" class="button quiet" onClick={() => setAfter(sessions.at(-1)?.id ?? '')}>
                  Next page
                </button>
              )}
            </div>
          </>
        )}
      </Loaded>
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
              <End key="end" session={session} onEnd={() => void press(session)} />
            ),
          ],
        }))}
      />
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
    </>
  );
}

function End({ session, onEnd }: { session: Session; onEnd(): void }) {
  return (
    <button type="button" class="link" onClick={onEnd}>
      End
      <span class="hidden">
        {' '}
        the session of {session.name} with {session.clientId}
      </span>
    </button>
  );
}
