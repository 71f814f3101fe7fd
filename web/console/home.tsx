// The first page: lists the areas of the console, and shows which areas the caller's roles allow.
import { Page } from './elements/page.tsx';
import { areas, mayUse } from './frame.tsx';
import { addressOfPage } from './location.ts';
import { roleText } from './session/roles.ts';
import { useSignedIn } from './session/session-context.ts';

export function Home() {
  const { session, tenant } = useSignedIn();
  return (
    <Page title={session.tenant?.name ?? tenant}>
      <ul class="cards">
        {areas.map((area) => (
          <li key={area.name}>
            <h2>
              <a href={addressOfPage(tenant, [area.name])}>{area.label}</a>
            </h2>
            <p>{area.about}</p>
            {!mayUse(area, session) && (
              <p class="quiet">Not allowed for you: this needs the role {area.roles.map(roleText).join(' or ')}.</p>
            )}
          </li>
        ))}
      </ul>
    </Page>
  );
}
