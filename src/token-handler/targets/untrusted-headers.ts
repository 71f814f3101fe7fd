// Lists request headers in which a client could claim an identity, an address, or a method, scheme or path that it did
// not use. Servers trust these headers, because a proxy in front of them usually sets or removes them. Upstreams have
// the token handler as their proxy, so the token handler removes these headers. `npm run docs` copies the list to
// docs/target-headers.md.

export interface UntrustedHeaders {
  /** The standard, server or service that defines or trusts the headers. */
  source: string;
  /** What a client could claim with the headers. */
  claim: string;
  /** Names of the headers. A trailing `*` matches any ending. */
  names: readonly string[];
}

export const untrustedHeaders: readonly UntrustedHeaders[] = [
  { source: 'RFC 7239', claim: 'address, host, scheme', names: ['Forwarded'] },
  {
    source: 'RFC 9440; nginx, Apache and HAProxy with client certificates',
    claim: 'client certificate',
    names: ['Client-Cert*', 'SSL-Client-*', 'X-SSL-*', 'X-Client-*'],
  },
  { source: 'RFC 3875 (CGI), CVE-2016-5385', claim: 'proxy of the server’s own calls', names: ['Proxy'] },
  {
    source: 'common practice, nginx, Traefik, Envoy (`X-Forwarded-Client-Cert`)',
    claim: 'address, host, port, scheme, path, user',
    names: ['X-Forward*', 'Forwarded-*', 'X-Real-*', 'X-Remote-*', 'X-Originating-*', 'X-ProxyUser-*', 'X-Proxy-*'],
  },
  {
    source: 'load balancers (Zeus, F5, Rackspace) and libraries that look for an address',
    claim: 'address',
    names: ['Client-IP', 'X-Cluster-*', 'X-True-*', 'Proxy-Client-IP', 'HTTP-*', 'X-Custom-IP-Authorization'],
  },
  { source: 'WebLogic', claim: 'address, scheme, client certificate', names: ['WL-Proxy-*'] },
  {
    source: 'nginx ingress controller, IIS (URL Rewrite), Symfony, Laminas',
    claim: 'path, host, scheme, method',
    names: ['X-Original-*', 'X-Rewrite-*', 'X-Scheme', 'X-URL-Scheme', 'Front-End-Https', 'X-Host', 'X-HTTP-Host-*'],
  },
  {
    source: 'method overrides (Google APIs, Express method-override, Symfony, Rails)',
    claim: 'method',
    names: ['X-HTTP-Method*', 'X-Method-*'],
  },
  { source: 'Next.js, CVE-2025-29927', claim: 'that authorization has run', names: ['X-Middleware-*'] },
  {
    source: 'Envoy, Istio',
    claim: 'user, address, path, timeouts, routing',
    names: ['X-Envoy-*', 'Sec-Istio-Auth-Userinfo'],
  },
  { source: 'Linkerd', claim: 'service account, address, routing', names: ['L5d-*'] },
  { source: 'oauth2-proxy, nginx `auth_request`, Gatekeeper', claim: 'user, token', names: ['X-Auth-*'] },
  { source: 'Apache, Authelia', claim: 'user, groups, address', names: ['Remote-*'] },
  { source: 'authentik', claim: 'user', names: ['X-Authentik-*'] },
  { source: 'Vouch Proxy', claim: 'user', names: ['X-Vouch-*'] },
  { source: 'Pomerium', claim: 'user, token', names: ['X-Pomerium-*'] },
  { source: 'Caddy Security', claim: 'user, roles', names: ['X-Token-Subject', 'X-Token-User-*'] },
  { source: 'Tailscale Serve', claim: 'user, permissions', names: ['Tailscale-*'] },
  { source: 'Teleport', claim: 'user, roles', names: ['Teleport-*'] },
  { source: 'ngrok', claim: 'user', names: ['Ngrok-Auth-*'] },
  {
    source: 'Kong, Apache APISIX, Tyk, WSO2 API Manager',
    claim: 'user, consumer, token',
    names: [
      ...['X-Authenticated-*', 'X-Consumer-*', 'X-Credential-*', 'X-Anonymous-Consumer', 'X-Userinfo'],
      ...['X-Access-Token', 'X-ID-Token', 'X-JWT-Assertion'],
    ],
  },
  { source: 'mod_auth_openidc', claim: 'user, token', names: ['OIDC-*'] },
  { source: 'mod_auth_cas', claim: 'user', names: ['CAS-*'] },
  {
    source: 'Shibboleth',
    claim: 'user, groups',
    names: [
      ...['Shib-*', 'X-Shib-*', 'EPPN', 'Subject-ID', 'Pairwise-ID', 'Persistent-ID', 'Affiliation'],
      ...['Unscoped-Affiliation', 'Entitlement'],
    ],
  },
  {
    source: 'Ory Oathkeeper; Grafana and other servers behind a signing-in proxy',
    claim: 'user',
    names: [
      'X-WebAuth-*',
      'X-User',
      'X-User-ID',
      'X-User-Name',
      'X-User-Email',
      'X-User-Groups',
      'X-User-Roles',
      'X-Username',
    ],
  },
  { source: 'Broadcom SiteMinder', claim: 'user', names: ['SM-*', 'SMUser'] },
  { source: 'IBM Verify (WebSEAL), Oracle Access Manager', claim: 'user, groups', names: ['IV-*', 'OAM-*'] },
  { source: 'Kubernetes', claim: 'user, groups', names: ['Impersonate-*'] },
  { source: 'Azure Front Door', claim: 'address, instance', names: ['X-Azure-*', 'X-FD-*'] },
  {
    source: 'Azure App Service',
    claim: 'user, token, client certificate',
    names: ['X-MS-Client-*', 'X-MS-Token-*', 'X-ARR-*'],
  },
  {
    source: 'Google Identity-Aware Proxy, App Engine, Cloud Endpoints, API Gateway',
    claim: 'user, address',
    names: [
      ...['X-Goog-Authenticated-*', 'X-Goog-IAP-*', 'X-AppEngine-*', 'X-Google-*', 'X-Endpoint-API-*'],
      'X-APIGateway-API-*',
    ],
  },
  {
    source: 'AWS load balancers, Verified Access, VPC Lattice, CloudFront',
    claim: 'user, client certificate, address',
    names: ['X-Amzn-OIDC-*', 'X-Amzn-AVA-*', 'X-Amzn-Lattice-*', 'X-Amzn-MTLS-*', 'CloudFront-*'],
  },
  { source: 'Cloudflare', claim: 'user, address', names: ['CF-*'] },
  { source: 'Akamai, Cloudflare', claim: 'address', names: ['True-Client-*', 'Akamai-*', 'X-Akamai-*'] },
  { source: 'Fastly', claim: 'address, scheme', names: ['Fastly-*'] },
  {
    source: 'other content delivery networks (Fly.io, Netlify, Vercel, DigitalOcean, Imperva, Sucuri, Alibaba)',
    claim: 'address',
    names: [
      'Fly-*',
      'X-NF-*',
      'X-Vercel-*',
      'DO-Connecting-IP',
      'Incap-*',
      'X-Sucuri-*',
      'Ali-CDN-*',
      'CDN-Src-IP',
      'CDN-Real-IP',
    ],
  },
];

// Matches a header name (a token, RFC 9110 section 5.6.2). A `*` is allowed only at the end, as a wildcard.
const patternForm = /^[!#$%&'+.^_`|~\da-z-]+\*?$/i;

/** True if a string is the name of a header, with or without a trailing `*`. */
export function isHeaderPattern(text: string): boolean {
  return patternForm.test(text);
}

/** Returns a function that checks whether a name matches any pattern. Ignores case and the kind of punctuation. */
export function createHeaderMatcher(patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set<string>();
  const beginnings: string[] = [];
  for (const pattern of patterns) {
    if (pattern.endsWith('*')) beginnings.push(normalName(pattern.slice(0, -1)));
    else exact.add(normalName(pattern));
  }
  // The results of `normalName` contain no characters that are special in regular expressions.
  const beginning = beginnings.length === 0 ? undefined : new RegExp(`^(?:${beginnings.join('|')})`);
  return (name) => {
    const normal = normalName(name);
    return exact.has(normal) || beginning?.test(normal) === true;
  };
}

/**
 * Returns the name in lower case, with all punctuation replaced by hyphens. Servers with CGI conventions take
 * `X-Forwarded-For` and `X_Forwarded_For` for the same header (RFC 3875 section 4.1.18). Old servers ignore all
 * differences of punctuation.
 */
function normalName(name: string): string {
  return name.toLowerCase().replace(/[^\da-z]/g, '-');
}
