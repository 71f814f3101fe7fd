// The page for a person who is not signed in: a link to sign in, and the list of unsent input that is kept from an
// earlier session.
import { useEffect, useState } from 'preact/hooks';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { TextField } from '../elements/fields.tsx';
import { PlainPage } from '../elements/plain-page.tsx';
import { addressOfPage, currentAddress, go, type Place } from '../location.ts';
import { keepsEverything, keptLabels } from './kept.ts';
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
      {kept.length > 0 && <Kept labels={kept} />}
      {!keepsEverything() && <p>Not everything that you typed could be kept, because it was too large.</p>}
      {ended && kept.length === 0 && keepsEverything() && <p>You had nothing unsaved.</p>}
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
  const [tenant, setTenant] = useState(tenantUsedLast);
  const [errors, setErrors] = useState<FieldError[]>([]);
  const submit = (event: Event) => {
    event.preventDefault();
    const name = tenant.trim();
    setErrors(name === '' ? [{ id: 'tenant', text: 'Enter the realm or name of the tenant' }] : []);
    if (name !== '') go(addressOfPage(name));
  };
  return (
    <PlainPage title="Which tenant?">
      <form onSubmit={submit} noValidate>
        <ErrorSummary errors={errors} />
        <TextField
          id="tenant"
          label="Realm or name of the tenant"
          hint="For example: demo"
          autocomplete="organization"
          error={errorOf(errors, 'tenant')}
          value={tenant}
          onChange={setTenant}
        />
        <button type="submit" class="button">
          Continue
        </button>
      </form>
    </PlainPage>
  );
}

/** Returns an empty text if the browser forbids the storage. */
function tenantUsedLast(): string {
  try {
    return localStorage.getItem(rememberedTenant) ?? '';
  } catch {
    return '';
  }
}

export function useRememberedTenant(tenant: string): void {
  useEffect(() => {
    try {
      if (tenant !== '') localStorage.setItem(rememberedTenant, tenant);
    } catch {}
  }, [tenant]);
}
