// The page for a person who is not signed in: a link to sign in, and the list of unsent input that is kept from an
// earlier session.
import { useEffect, useState } from 'preact/hooks';
import { PlainPage } from '../elements/plain-page.tsx';
import { addressOfPage, currentAddress, go, type Place } from '../location.ts';
import { keptLabels } from './kept.ts';
import { signInUrl } from './session.ts';

const errors: Record<string, string> = {
  access_denied: 'The sign-in was cancelled or refused. You can try again.',
  login_required: 'You have to sign in again.',
};

export function SignedOutPage({ place, ended }: { place: Place; ended: boolean }) {
  const error = errors[place.query.get('error') ?? ''];
  const returnTo = error ? location.pathname : currentAddress();
  const kept = keptLabels();
  return (
    <PlainPage title={ended ? 'Your session has ended' : 'Sign in to the console'}>
      {error && <p role="alert">{error}</p>}
      {!ended && <p>The console is for administrators of the tenant {place.tenant}.</p>}
      {kept.length > 0 ? <Kept labels={kept} /> : ended && <p>You had nothing unsaved.</p>}
      <p>
        <a class="button" href={signInUrl(place.tenant, returnTo)}>
          {ended ? 'Sign in again' : 'Sign in'}
        </a>
      </p>
      <p class="quiet">
        <a href={addressOfPage('')}>Another tenant</a>
      </p>
    </PlainPage>
  );
}

function Kept({ labels }: { labels: string[] }) {
  return (
    <>
      <p>This tab keeps what you typed. It is there again after you sign in:</p>
      <ul>
        {labels.map((label) => (
          <li key={label}>{label}</li>
        ))}
      </ul>
      <p>Close this tab if you use a shared computer: that deletes it.</p>
    </>
  );
}

const rememberedTenant = 'formgate-console:tenant';

/** Asks for the tenant, and suggests the tenant that this browser used last. The tenant is not a secret. */
export function TenantPage() {
  const [tenant, setTenant] = useState(() => localStorage.getItem(rememberedTenant) ?? '');
  const [missing, setMissing] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    setMissing(tenant.trim() === '');
    if (tenant.trim() !== '') go(addressOfPage(tenant.trim()));
    else document.querySelector<HTMLElement>('#tenant')?.focus();
  };
  return (
    <PlainPage title="Which tenant?">
      <form onSubmit={submit} noValidate>
        <div class={missing ? 'field invalid' : 'field'}>
          <label for="tenant">Realm or name of the tenant</label>
          <p class="hint" id="tenant-hint">
            For example: demo
          </p>
          {missing && (
            <p class="error-message" id="tenant-error">
              Enter the realm or name of the tenant
            </p>
          )}
          <input
            id="tenant"
            type="text"
            autocomplete="organization"
            aria-describedby={missing ? 'tenant-hint tenant-error' : 'tenant-hint'}
            aria-invalid={missing}
            value={tenant}
            onInput={({ currentTarget }) => setTenant(currentTarget.value)}
          />
        </div>
        <button type="submit" class="button">
          Continue
        </button>
      </form>
    </PlainPage>
  );
}

export function useRememberedTenant(tenant: string): void {
  useEffect(() => {
    if (tenant !== '') localStorage.setItem(rememberedTenant, tenant);
  }, [tenant]);
}
