// Parses the arguments of the command `keycloak-setup`.

import { parseCommandLine, UsageError } from '../../service/operations/command-line.ts';
import { withoutTrailingSlashes } from '../../service/url-text.ts';

export interface SetupCommand {
  /** Keycloak's base URL, without `/realms` and without a final slash. */
  url: string;
  /** User name of an administrator of the realm `master`. */
  user: string;
  urnPrefix: string;
  /** Client id of the account of the applicants' pages in the realm core. If undefined, it is not created. */
  apply: string | undefined;
  /** Client id of an account in the realm core that administers all tenants. If undefined, it is not created. */
  operator: string | undefined;
  /** Names of the tenants' realms. */
  tenants: string[];
  /**
   * Email of a person who gets all administrator roles in each tenant's realm. If undefined, the person is not created.
   */
  admin: string | undefined;
  /** Client id of an intake application in each tenant's realm. If undefined, the client is not created. */
  intake: string | undefined;
  /**
   * Client id of an account for scripts in each tenant's realm, with all administrator roles. If undefined, the client
   * is not created.
   */
  script: string | undefined;
  /**
   * Email of a person without roles in each tenant's realm, for `helm test`. If undefined, the person is not created.
   */
  tester: string | undefined;
  /** Number of clients that the initial access token of each tenant's realm can register. If 0, no token is created. */
  registrations: number;
  /** Path of the file to which the command writes the client secrets, passwords and tokens. */
  output: string;
}

export const help = `Creates in Keycloak what Formgate needs: the realm core with the services' accounts, and for each tenant a realm with
roles, audiences, and optionally an administrator, accounts and a token to register clients. It adds what is missing
and deletes nothing, so it can be repeated. It changes an existing object in one case only: a client that needs a service
account and has none becomes a confidential client with one. docs/keycloak.md describes what it creates.

Usage: KEYCLOAK_PASSWORD=… npm run keycloak:setup -- --url URL --user NAME --tenant REALM [--tenant REALM]…

  --url URL            base URL of Keycloak, with /auth if it uses that path
  --user NAME          an administrator of the realm master; the password is in KEYCLOAK_PASSWORD
  --tenant REALM       realm of a tenant; may be repeated
  --urn-prefix PREFIX  URN prefix of Formgate (urn:example)
  --apply ID           the account of the applicants' pages in the realm core, such as formgate-apply
  --operator ID        an account in the realm core that administers the forms and sessions of all tenants
  --admin EMAIL        a person with all administrator roles in each tenant's realm, with a temporary password
  --intake ID          an intake application in each tenant's realm, with this client id
  --script ID          an account for scripts in each tenant's realm, with this client id and all administrator roles
  --tester EMAIL       a person without roles in each tenant's realm, who can sign in immediately, for helm test
  --registrations N    a token for N registrations of clients in each tenant's realm, valid for a day
  --output FILE        file for the secrets, as a Kubernetes Secret (formgate-keycloak.yaml). It is created first, and an
                       existing file is not overwritten. If the command fails, it contains the secrets so far

Exit code 0; 1 if Keycloak refuses or cannot be reached; 2 for invalid arguments.`;

/** Returns undefined if help is requested. Throws UsageError if the arguments are invalid. */
export function parseSetupArguments(args: string[]): SetupCommand | undefined {
  const values = parse(args);
  if (values.help || args.length === 0) return undefined;
  const { url = '', user = '', tenant = [], registrations = '0' } = values;
  if (!/^https?:\/\/[^\s?#]+$/.test(url)) throw new UsageError('--url must be an http or https URL. See --help.');
  if (user === '') throw new UsageError('--user is required. See --help.');
  const wrong = tenant.find((realm) => !/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(realm) || realm === 'master');
  if (wrong !== undefined) throw new UsageError(`--tenant ${JSON.stringify(wrong)} is no name of a realm. See --help.`);
  if (!/^\d{1,3}$/.test(registrations)) throw new UsageError('--registrations must be 0 to 999. See --help.');
  return {
    ...{ url: withoutTrailingSlashes(url), user, tenants: [...new Set(tenant)] },
    urnPrefix: values['urn-prefix'] ?? 'urn:example',
    apply: values.apply,
    operator: values.operator,
    admin: values.admin,
    intake: values.intake,
    script: values.script,
    tester: values.tester,
    registrations: Number(registrations),
    output: values.output ?? 'formgate-keycloak.yaml',
  };
}

function parse(args: string[]) {
  const text = { type: 'string' } as const;
  const options = {
    ...{ url: text, user: text, 'urn-prefix': text, admin: text, intake: text, registrations: text, output: text },
    ...{ script: text, tester: text, apply: text, operator: text },
    tenant: { type: 'string', multiple: true },
    help: { type: 'boolean' },
  } as const;
  return parseCommandLine({ args, options }).values;
}
