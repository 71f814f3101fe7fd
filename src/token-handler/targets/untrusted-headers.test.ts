import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withHeaderTables } from '../../../test/rules/target-header-reference.ts';
import { originWideHeaders } from './origin-wide-headers.ts';
import { createRequestHeaders } from './request-headers.ts';
import { createHeaderMatcher, isHeaderPattern, untrustedHeaders } from './untrusted-headers.ts';

const names = untrustedHeaders.flatMap((group) => group.names);
const isUntrusted = createHeaderMatcher(names);

/**
 * Full names of headers, keyed by product. They are copied from the documentation of the products, and not derived from
 * the patterns under test.
 */
const sentByProxies: Record<string, readonly string[]> = {
  'RFC 7239 and common practice': [
    ...['Forwarded', 'X-Forwarded', 'Forwarded-For', 'X-Forwarded-For', 'X-Forwarded-By', 'X-Forwarded-Host'],
    ...['X-Forwarded-Port', 'X-Forwarded-Prefix', 'X-Forwarded-Proto', 'X-Forwarded-Scheme', 'X-Forwarded-Server'],
    ...['X-Forwarded-Ssl', 'X-Forwarded-Uri', 'X-Forwarded-Method', 'X-Real-IP', 'X-Client-IP', 'Client-IP'],
    ...['X-Cluster-Client-IP', 'X-Originating-IP', 'X-Remote-IP', 'X-Remote-Addr', 'Front-End-Https', 'Proxy'],
  ],
  'RFC 9440 (client certificates)': ['Client-Cert', 'Client-Cert-Chain'],
  'ingress-nginx with auth-tls-pass-certificate-to-upstream': [
    ...['ssl-client-verify', 'ssl-client-subject-dn', 'ssl-client-issuer-dn', 'ssl-client-cert'],
  ],
  'Apache mod_ssl, by RequestHeader set with the names of its variables': [
    ...['SSL_CLIENT_S_DN', 'SSL_CLIENT_S_DN_CN', 'SSL_CLIENT_S_DN_Email', 'SSL_CLIENT_I_DN', 'SSL_CLIENT_VERIFY'],
    ...['SSL_CLIENT_CERT', 'SSL_CLIENT_M_SERIAL', 'SSL_CLIENT_SAN_Email_0', 'X-SSL-Client-S-DN'],
  ],
  'HAProxy, "Client certificate authentication"': ['X-SSL-Client-CN', 'X-SSL-Client-DN', 'X-SSL-Client-Verify'],
  'Traefik, PassTLSClientCert': ['X-Forwarded-Tls-Client-Cert', 'X-Forwarded-Tls-Client-Cert-Info'],
  'Envoy and Istio': [
    ...['X-Forwarded-Client-Cert', 'X-Envoy-External-Address', 'X-Envoy-Original-Path', 'X-Envoy-Internal'],
    'Sec-Istio-Auth-Userinfo',
  ],
  Linkerd: ['l5d-client-id', 'l5d-remote-ip', 'l5d-dst-override'],
  'IIS, Symfony and Laminas (CVE-2018-14773)': ['X-Original-URL', 'X-Rewrite-URL'],
  'ingress-nginx': [
    'X-Original-URI',
    'X-Original-Forwarded-For',
    'X-Original-Method',
    'X-Scheme',
    'X-Auth-Request-Redirect',
  ],
  'method overrides': ['X-HTTP-Method', 'X-HTTP-Method-Override', 'X-Method-Override'],
  'Next.js (CVE-2025-29927)': ['X-Middleware-Subrequest', 'X-Middleware-Rewrite'],
  'oauth2-proxy': [
    ...['X-Auth-Request-User', 'X-Auth-Request-Email', 'X-Auth-Request-Groups', 'X-Auth-Request-Access-Token'],
    ...['X-Auth-Request-Preferred-Username', 'X-Forwarded-User', 'X-Forwarded-Email', 'X-Forwarded-Groups'],
    ...['X-Forwarded-Access-Token', 'X-Forwarded-Preferred-Username'],
  ],
  'Gatekeeper (Louketo)': ['X-Auth-Subject', 'X-Auth-Username', 'X-Auth-Roles', 'X-Auth-Token', 'X-Auth-Email'],
  Authelia: ['Remote-User', 'Remote-Groups', 'Remote-Name', 'Remote-Email'],
  authentik: [
    ...['X-authentik-username', 'X-authentik-groups', 'X-authentik-email', 'X-authentik-uid', 'X-authentik-jwt'],
    'X-authentik-entitlements',
  ],
  'Vouch Proxy': ['X-Vouch-User', 'X-Vouch-IdP-Claims-Email', 'X-Vouch-IdP-AccessToken', 'X-Vouch-Token'],
  Pomerium: ['X-Pomerium-Jwt-Assertion', 'X-Pomerium-Claim-Email', 'X-Pomerium-Claim-Groups'],
  'Ory Oathkeeper, mutator header': ['X-User'],
  'Caddy Security, "inject headers with claims"': [
    ...['X-Token-Subject', 'X-Token-User-Name', 'X-Token-User-Email', 'X-Token-User-Roles'],
  ],
  'Tailscale Serve': [
    ...['Tailscale-User-Login', 'Tailscale-User-Name', 'Tailscale-User-Profile-Pic', 'Tailscale-Headers-Info'],
    'Tailscale-App-Capabilities',
  ],
  'Teleport application access': ['Teleport-Jwt-Assertion'],
  'Teleport Kubernetes access': ['Teleport-Impersonate-User', 'Teleport-Impersonate-Group'],
  'ngrok, OAuth': ['Ngrok-Auth-User-Id', 'Ngrok-Auth-User-Email', 'Ngrok-Auth-User-Name'],
  Kong: [
    ...['X-Consumer-ID', 'X-Consumer-Custom-ID', 'X-Consumer-Username', 'X-Consumer-Groups', 'X-Credential-Identifier'],
    ...['X-Credential-Username', 'X-Anonymous-Consumer', 'X-Authenticated-Userid', 'X-Authenticated-Scope'],
    'X-Authenticated-Groups',
  ],
  'Apache APISIX, openid-connect': ['X-Userinfo', 'X-Access-Token', 'X-ID-Token'],
  'WSO2 API Manager, backend JWT': ['X-JWT-Assertion'],
  mod_auth_openidc: ['OIDC_CLAIM_sub', 'OIDC_CLAIM_email', 'OIDC_access_token', 'OIDC_id_token_payload'],
  mod_auth_cas: ['CAS-User', 'CAS_eduPersonPrincipalName'],
  'Shibboleth SP, attribute-map.xml with ShibUseHeaders': [
    ...['Shib-Session-ID', 'Shib-Identity-Provider', 'eppn', 'subject-id', 'pairwise-id', 'persistent-id'],
    ...['affiliation', 'unscoped-affiliation', 'entitlement'],
  ],
  'Grafana, auth.proxy': ['X-WEBAUTH-USER', 'X-WEBAUTH-EMAIL', 'X-WEBAUTH-GROUPS', 'X-WEBAUTH-ROLE'],
  'Broadcom SiteMinder': ['SM_USER', 'SM_USERDN', 'SM_USERGROUPS', 'SM_SERVERSESSIONID', 'SMUSER'],
  'IBM WebSEAL': ['iv-user', 'iv-groups', 'iv-creds', 'iv-remote-address'],
  'Oracle Access Manager': ['OAM_REMOTE_USER', 'OAM_REMOTE_USER_GROUPS', 'OAM_IDENTITY_DOMAIN'],
  'Oracle WebLogic': ['WL-Proxy-Client-IP', 'WL-Proxy-SSL', 'WL-Proxy-Client-Cert', 'Proxy-Client-IP'],
  'Kubernetes API server': [
    ...['X-Remote-User', 'X-Remote-Group', 'X-Remote-Extra-Scopes', 'Impersonate-User', 'Impersonate-Group'],
    ...['Impersonate-Uid', 'Impersonate-Extra-Scopes'],
  ],
  'Azure Front Door': ['X-Azure-ClientIP', 'X-Azure-SocketIP', 'X-Azure-FDID', 'X-FD-HealthProbe'],
  'Azure App Service': [
    ...['X-MS-CLIENT-PRINCIPAL', 'X-MS-CLIENT-PRINCIPAL-ID', 'X-MS-CLIENT-PRINCIPAL-NAME', 'X-MS-CLIENT-PRINCIPAL-IDP'],
    ...['X-MS-TOKEN-AAD-ID-TOKEN', 'X-MS-TOKEN-AAD-ACCESS-TOKEN', 'X-ARR-ClientCert', 'X-ARR-SSL'],
  ],
  'Google Identity-Aware Proxy': [
    ...['X-Goog-Authenticated-User-Email', 'X-Goog-Authenticated-User-Id', 'X-Goog-IAP-JWT-Assertion'],
  ],
  'Google App Engine': [
    'X-AppEngine-User-IP',
    'X-Appengine-User-Email',
    'X-Appengine-Inbound-Appid',
    'X-Appengine-Cron',
  ],
  'Google Cloud Endpoints and API Gateway': ['X-Endpoint-API-UserInfo', 'X-Apigateway-Api-Userinfo'],
  'AWS Application Load Balancer': [
    ...['X-Amzn-Oidc-Data', 'X-Amzn-Oidc-Identity', 'X-Amzn-Oidc-Accesstoken', 'X-Amzn-Mtls-Clientcert'],
    ...['X-Amzn-Mtls-Clientcert-Subject', 'X-Amzn-Mtls-Clientcert-Leaf'],
  ],
  'AWS Verified Access': ['X-Amzn-Ava-User-Context'],
  'AWS VPC Lattice': ['X-Amzn-Lattice-Identity', 'X-Amzn-Lattice-Identity-Tags', 'X-Amzn-Lattice-Network'],
  'AWS CloudFront': ['CloudFront-Viewer-Address', 'CloudFront-Forwarded-Proto', 'CloudFront-Viewer-Country'],
  Cloudflare: [
    ...['CF-Connecting-IP', 'CF-Connecting-IPv6', 'CF-Pseudo-IPv4', 'CF-IPCountry', 'CF-Visitor', 'True-Client-IP'],
    ...[
      'Cf-Access-Jwt-Assertion',
      'Cf-Access-Authenticated-User-Email',
      'Cf-Access-Client-Id',
      'Cf-Client-Cert-Subject-Dn',
    ],
  ],
  'Akamai, Fastly, Fly.io, Netlify, Vercel and DigitalOcean': [
    ...[
      'True-Client-IP',
      'Akamai-Origin-Hop',
      'Fastly-Client-IP',
      'Fastly-SSL',
      'Fly-Client-IP',
      'X-NF-Client-Connection-IP',
    ],
    ...['X-Vercel-Forwarded-For', 'X-Vercel-Proxied-For', 'DO-Connecting-IP'],
  ],
};

/** Returns the names of the client's headers that an upstream would receive. */
function forwarded(sent: readonly string[]): string[] {
  const chooseHeaders = createRequestHeaders({ tenantHeader: 'X-PLATFORM-TENANT', alsoDropped: [] });
  const list = chooseHeaders(
    { rawHeaders: sent.flatMap((name) => [name, 'claimed']), headers: {} },
    {
      ...{ accessToken: 'token', requestId: 'id', traceparent: 'trace', isNewTrace: false },
      forwarded: { address: '203.0.113.9', protocol: 'https', host: 'www.example.ca' },
    },
  );
  return list.filter((_item, index) => list[index + 1] === 'claimed');
}

describe('the list of untrusted headers', () => {
  it('matches docs/target-headers.md, which npm run docs writes', () => {
    const page = readFileSync(join(import.meta.dirname, '../../../docs/target-headers.md'), 'utf8');
    expect(page).toBe(withHeaderTables(page, untrustedHeaders, originWideHeaders));
  });

  it.each(Object.entries(sentByProxies))('includes the headers of %s', (_source, sent) => {
    const written = sent.flatMap((name) => [name, name.toLowerCase(), name.toUpperCase().replaceAll('-', '_')]);
    expect(written.filter((name) => !isUntrusted(name))).toEqual([]);
    expect(forwarded(written)).toEqual([]);
  });

  it('applies in any letter case and with any punctuation, and to prefixes where an entry ends with an asterisk', () => {
    const punctuation = fc.constantFrom(..."-_.!#$%&'*+^`|~");
    fc.assert(
      fc.property(fc.constantFrom(...names), punctuation, fc.boolean(), (pattern, mark, isUpper) => {
        const written = pattern.replace('*', 'anything-1').replaceAll('-', mark);
        expect(isUntrusted(isUpper ? written.toUpperCase() : written.toLowerCase())).toBe(true);
        if (!pattern.endsWith('*'))
          expect(isUntrusted(`${written}x`) && !isUntrusted(`x${written}`)).toBe(
            names.some(
              (other) =>
                other.endsWith('*') && `${pattern}x`.toLowerCase().startsWith(other.slice(0, -1).toLowerCase()),
            ),
          );
      }),
    );
  });

  it('includes no header that browsers and frontends need', () => {
    const needed = [
      'Accept',
      'Accept-Encoding',
      'Accept-Language',
      'Cache-Control',
      'Content-Type',
      'Content-Encoding',
    ];
    needed.push(
      'Content-Disposition',
      'DNT',
      'ETag',
      'From',
      'If-Match',
      'If-None-Match',
      'If-Modified-Since',
      'If-Range',
    );
    needed.push(
      'Idempotency-Key',
      'Last-Event-ID',
      'Link',
      'Origin',
      'Pragma',
      'Prefer',
      'Priority',
      'Range',
      'Referer',
    );
    needed.push('Save-Data', 'Sec-CH-UA', 'Sec-Fetch-Site', 'Sec-Fetch-Dest', 'Sec-WebSocket-Key', 'User-Agent', 'Via');
    needed.push('X-Requested-With', 'X-Request-Id', 'X-Correlation-Id', 'X-Form-Code', 'X-Api-Version', 'X-User-Agent');
    needed.push('traceparent', 'tracestate', 'baggage', 'X-Upload-Content-Type', 'X-Amz-Date', 'X-Custom', 'Depth');
    expect(needed.filter(isUntrusted)).toEqual([]);
  });

  it('contains only patterns that TARGET_DROPPED_HEADERS accepts, too', () => {
    expect(names.filter((name) => !isHeaderPattern(name))).toEqual([]);
  });
});

describe('the name of a header in TARGET_DROPPED_HEADERS', () => {
  it('is a token, which may end with an asterisk', () => {
    for (const name of ['X-Staff-Id', 'x_staff', 'X-Internal-*', 'a', "!#$%&'+.^_`|~9"])
      expect(isHeaderPattern(name)).toBe(true);
    for (const name of ['', '*', 'X-*-Id', '**', 'X Staff', 'X:Staff', 'X-Staff\n', 'é', 'X-Staff,Y'])
      expect([name, isHeaderPattern(name)]).toEqual([name, false]);
  });

  it('matches no other header, and an empty list matches none', () => {
    expect(createHeaderMatcher([])('')).toBe(false);
    for (const name of ['X-B', 'XA', 'X--A']) expect([name, createHeaderMatcher(['X-A'])(name)]).toEqual([name, false]);
  });
});
