// Chooses the page for an address. An area for which the caller has no role shows an explanation instead of its pages.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { ClientList } from './clients/client-list.tsx';
import { ClientPage } from './clients/client-page.tsx';
import { DefinitionList } from './definitions/definition-list.tsx';
import { DefinitionPage } from './definitions/definition-page.tsx';
import { Page } from './elements/page.tsx';
import { RoleNeeded } from './elements/role-needed.tsx';
import { AnnounceContext, Announcement } from './elements/status.tsx';
import { FormList } from './forms/form-list.tsx';
import { FormPage } from './forms/form-page.tsx';
import { type Area, areas, mayUse } from './frame.tsx';
import { Home } from './home.tsx';
import { currentPlace, type Place } from './location.ts';
import { OperationsPage } from './operations/operations-page.tsx';
import { RegisterList } from './registers/register-list.tsx';
import { RegisterPage } from './registers/register-page.tsx';
import { useSignedIn } from './session/session-context.ts';
import { SessionList } from './sessions/session-list.tsx';

export function View({ place }: { place: Place }) {
  const address = addressKeyOf(place);
  const [said, setSaid] = useState({ address, text: '', count: 0 });
  const announce = (text: string) =>
    setSaid(({ count }) => ({ address: addressKeyOf(currentPlace()), text, count: count + 1 }));
  return (
    <AnnounceContext.Provider value={announce}>
      <Announcement text={said.address === address ? said.text : ''} count={said.count} />
      <AreaView key={address} place={place} />
    </AnnounceContext.Provider>
  );
}

const addressKeyOf = ({ tenant, parts }: Place) => [tenant, ...parts].join('/');

function AreaView({ place }: { place: Place }) {
  const { session } = useSignedIn();
  const [name] = place.parts;
  if (name === undefined) return <Home />;
  const area = areas.find((one) => one.name === name);
  if (!area) return <Missing />;
  if (!mayUse(area, session)) return <Refused area={area} />;
  return views[name]?.(place) ?? <Missing />;
}

const views: Record<string, (place: Place) => JSX.Element | undefined> = {
  forms: (place) => {
    const [, id, ...more] = place.parts;
    if (more.length > 0) return undefined;
    return id === undefined ? <FormList place={place} /> : <FormPage id={id} />;
  },
  definitions: ({ parts: [, id, ...more] }) => {
    if (more.length > 0) return undefined;
    return id === undefined ? <DefinitionList /> : <DefinitionPage id={id} />;
  },
  registers: (place) => {
    const [, name, ...more] = place.parts;
    if (more.length > 0) return undefined;
    return name === undefined ? <RegisterList place={place} /> : <RegisterPage name={name} />;
  },
  clients: (place) => {
    const [, id, ...more] = place.parts;
    if (more.length > 0) return undefined;
    return id === undefined ? <ClientList /> : <ClientPage id={id} />;
  },
  sessions: (place) => (place.parts.length === 1 ? <SessionList place={place} /> : undefined),
  operations: (place) => (place.parts.length === 1 ? <OperationsPage place={place} /> : undefined),
};

function Missing() {
  return (
    <Page title="Page not found">
      <p>The console has no page at this address.</p>
    </Page>
  );
}

function Refused({ area }: { area: Area }) {
  return (
    <Page title={area.label}>
      <RoleNeeded roles={area.roles} to={`use ${area.label.toLowerCase()}`} />
    </Page>
  );
}
