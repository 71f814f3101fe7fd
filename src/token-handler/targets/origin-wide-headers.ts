// Lists response headers that change the browser's state for a whole origin and for later requests. On the upstream's
// own host, these headers affect only the upstream. Through a target, they would affect the frontend. `npm run docs`
// copies the list to docs/target-headers.md.

export interface OriginWideHeaders {
  /** The standard that defines the headers. */
  source: string;
  /** What the headers would do to the frontend. */
  effect: string;
  names: readonly string[];
}

export const originWideHeaders: readonly OriginWideHeaders[] = [
  { source: 'RFC 6265, RFC 2965', effect: 'sets cookies', names: ['Set-Cookie', 'Set-Cookie2'] },
  {
    source: 'Clear Site Data',
    effect: 'clears the session’s cookie, and everything else that the browser has stored',
    names: ['Clear-Site-Data'],
  },
  {
    source: 'Service Workers',
    effect: 'lets a service worker control paths outside its script’s folder',
    names: ['Service-Worker-Allowed'],
  },
  {
    source: 'RFC 6797 (HSTS)',
    effect: 'requires https of the host and its subdomains for a long time, or ends the site’s own requirement',
    names: ['Strict-Transport-Security'],
  },
  {
    source: 'RFC 7838',
    effect: 'sends later requests to another host or port, or removes the site’s own alternative',
    names: ['Alt-Svc'],
  },
  {
    source: 'Network Error Logging, Reporting API (2018)',
    effect: 'reports the addresses of requests, including sign-in codes, to another server',
    names: ['NEL', 'Report-To'],
  },
  {
    source: 'RFC 8942, Client Hints Infrastructure, Client Hint Reliability',
    effect: 'makes the browser send details of the device, or stop sending details that the site asked for',
    names: ['Accept-CH', 'Critical-CH'],
  },
  {
    source: 'RFC 9842 (Compression Dictionary Transport)',
    effect: 'makes the browser name this response in requests for other paths of the site',
    names: ['Use-As-Dictionary'],
  },
  {
    source: 'Login Status API (FedCM)',
    effect: 'tells the browser that people are signed in to the site as an identity provider, or signed out of it',
    names: ['Set-Login'],
  },
  {
    source: 'Device Bound Session Credentials',
    effect: 'binds cookies of the site to a session of the upstream, and delays requests while that session is renewed',
    names: ['Secure-Session-Registration', 'Secure-Session-Challenge'],
  },
  {
    source: 'RFC 7469, RFC 9163 (obsolete; older browsers obey)',
    effect: 'refuses the site’s certificates, or reports them',
    names: ['Public-Key-Pins', 'Expect-CT'],
  },
];
