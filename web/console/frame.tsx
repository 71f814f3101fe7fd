// Header, navigation and main area of a signed-in page.
import type { ComponentChildren } from 'preact';
import { addressOfPage, type Place } from './location.ts';
import { hasRole, type Role } from './session/roles.ts';
import type { Session } from './session/session.ts';

export interface Area {
  /** First part of the area's path. */
  name: string;
  label: string;
  /** The roles for this area. The area's requests need one of them. */
  roles: readonly Role[];
  about: string;
}

export const areas: readonly Area[] = [
  {
    name: 'forms',
    label: 'Forms',
    roles: ['form-admin'],
    about: 'Find forms, see their data and dates, and act on them.',
  },
  {
    name: 'definitions',
    label: 'Definitions',
    roles: ['configuration-admin', 'form-admin'],
    about: 'Edit, check and publish form definitions, and compare their revisions.',
  },
  {
    name: 'registers',
    label: 'Registers',
    roles: ['form-admin', 'configuration-admin'],
    about: 'Edit the lists behind drop-downs, by table or by CSV.',
  },
  {
    name: 'clients',
    label: 'Clients',
    roles: ['token-handler-admin'],
    about: 'Set up and register the frontends that sign in through the token handler.',
  },
  {
    name: 'sessions',
    label: 'Sessions',
    roles: [],
    about: 'See who is signed in, and end sessions.',
  },
  {
    name: 'operations',
    label: 'Operations',
    roles: ['form-admin'],
    about: 'See runs of the reconciler, items in quarantine, undelivered events and limits reached.',
  },
];

export function mayUse({ roles }: Area, session: Session): boolean {
  return roles.length === 0 || roles.some((role) => hasRole(session, role));
}

interface Props {
  place: Place;
  session: Session;
  onSignOut(): void;
  children: ComponentChildren;
}

export function Frame({ place, session, onSignOut, children }: Props) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="banner">
        <a class="product" href={addressOfPage(place.tenant)}>
          Formgate console
        </a>
        <p class="person">
          <span>
            {session.name}, {session.tenant?.name ?? place.tenant}
          </span>
          <button type="button" class="link" onClick={onSignOut}>
            Sign out
          </button>
        </p>
      </header>
      <nav class="areas" aria-label="Areas">
        <ul>
          {areas.map(({ name, label }) => (
            <li key={name}>
              <a href={addressOfPage(place.tenant, [name])} aria-current={current(place, name)}>
                {label}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

function current({ parts }: Place, name: string): 'page' | 'true' | undefined {
  if (parts[0] !== name) return undefined;
  return parts.length === 1 ? 'page' : 'true';
}
