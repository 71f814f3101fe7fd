// The shell of the console. Its content depends on who is signed in.
import { PlainPage } from './elements/plain-page.tsx';
import { Frame } from './frame.tsx';
import { addressOfPage, type Place, usePlace } from './location.ts';
import { CorePage, coreRealm } from './session/core-page.tsx';
import { ExpiryWarning } from './session/expiry-warning.tsx';
import { forgetAll } from './session/kept.ts';
import { type Session, tokenHandler } from './session/session.ts';
import { SignedInContext } from './session/session-context.ts';
import { type FollowedSession, useFollowedSession } from './session/session-state.ts';
import { SignedOutPage, TenantPage, useRememberedTenant } from './session/signed-out-page.tsx';
import { isTenant } from './session/tenant-name.ts';
import { View } from './views.tsx';

export function App() {
  const place = usePlace();
  const followed = useFollowedSession();
  useRememberedTenant(place.tenant);
  if (place.tenant === '') return <TenantPage />;
  if (place.tenant.toLowerCase() === coreRealm) return <CorePage />;
  const { state } = followed;
  if (state.name === 'loading') return <Loading />;
  if (state.name === 'unreachable') return <Unreachable onRetry={() => followed.reload()} />;
  if (state.name === 'signed-out') return <SignedOutPage place={place} ended={state.ended} />;
  if (isOfOtherTenant(state.session, place)) return <OtherTenant session={state.session} place={place} />;
  return <SignedIn session={state.session} place={place} followed={followed} />;
}

function isOfOtherTenant({ tenant }: Session, place: Place): boolean {
  return tenant ? !isTenant(place.tenant, tenant) : false;
}

function signOut(tenant: string): void {
  forgetAll();
  tokenHandler().signOut(addressOfPage(tenant));
}

interface SignedInProps {
  session: Session;
  place: Place;
  followed: FollowedSession;
}

function SignedIn({ session, place, followed }: SignedInProps) {
  const leave = () => signOut(place.tenant);
  return (
    <SignedInContext.Provider value={{ session, tenant: place.tenant }}>
      <Frame place={place} session={session} onSignOut={leave}>
        <View place={place} />
      </Frame>
      {followed.ending && <ExpiryWarning ending={followed.ending} onSignOut={leave} />}
    </SignedInContext.Provider>
  );
}

function Loading() {
  return (
    <PlainPage title="Loading" isWaiting>
      <p role="status">One moment.</p>
    </PlainPage>
  );
}

function Unreachable({ onRetry }: { onRetry(): void }) {
  return (
    <PlainPage title="The console cannot be reached">
      <p>The service that keeps your session does not respond. Nothing that you typed in this tab was lost.</p>
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </PlainPage>
  );
}

function OtherTenant({ session, place }: { session: Session; place: Place }) {
  const name = session.tenant?.name ?? 'another tenant';
  return (
    <PlainPage title="You are signed in to another tenant">
      <p>
        This browser is signed in to {name}. To work with {place.tenant}, sign out first.
      </p>
      <div class="actions">
        <a class="button" href={`/console/${session.tenant?.realm ?? ''}`}>
          Continue with {name}
        </a>
        <button type="button" class="button quiet" onClick={() => signOut(place.tenant)}>
          Sign out
        </button>
      </div>
    </PlainPage>
  );
}
