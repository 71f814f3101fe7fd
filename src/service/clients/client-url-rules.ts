// Rules for BUILDER_APP_URL and CONSOLE_URL. The redirect URIs of core clients begin with these URLs, so both URLs must
// meet the rules for redirect URIs.
import type { SettingsRule } from '../operations/settings-rules.ts';
import { parseRedirectUri } from './redirect-uri.ts';

type ClientUrl = 'BUILDER_APP_URL' | 'CONSOLE_URL';
type ClientUrls = Partial<Record<ClientUrl, string>> & { ALLOW_INSECURE_REDIRECT_URIS: boolean };

const secureRule = (name: ClientUrl): SettingsRule => ({
  names: [name, 'ALLOW_INSECURE_REDIRECT_URIS'],
  holds: ({ [name]: url, ALLOW_INSECURE_REDIRECT_URIS: allowInsecure }: ClientUrls) =>
    url === undefined || parseRedirectUri(url, { allowInsecure, allowWildcardPaths: false }).problem === undefined,
  problem: 'must be https, except for localhost, 127.0.0.1 and [::1], unless ALLOW_INSECURE_REDIRECT_URIS is true',
});

export const clientUrlRules: SettingsRule[] = [secureRule('BUILDER_APP_URL'), secureRule('CONSOLE_URL')];
