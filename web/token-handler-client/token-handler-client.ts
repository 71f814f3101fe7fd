// The browser's client of the token handler. In all tabs of a site, it tracks who is signed in, sends requests with
// CSRF protection, and signs people in and out. This client never redirects on its own, and never sees a token.
// README.md describes its use.
import type { ClientOptions, SignIn } from './options.ts';
import { createOwnership, type Message, type Session, type SessionEvent } from './session.ts';

/** Reads the session when constructed, and follows other tabs until `close` is called. A page needs one instance. */
export class TokenHandlerClient {
  readonly #options: ClientOptions;
  /** Addresses of the token handler and of the client's endpoints. */
  readonly #root: string;
  readonly #clientRoot: string;
  /** Name of the broadcast channel, of the lock and of the kept data. */
  readonly #key: string;
  readonly #channel: BroadcastChannel;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #ownOf: (session: Session) => Session | null;
  #session: Session | null | undefined;
  #sessionOfSite: Session | null | undefined;
  #person: string | undefined;
  /** The server's clock minus the browser's, in milliseconds. */
  #offset = 0;
  #changes = 0;
  #learntAt = 0;
  #reading: Promise<Session | null> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #warned: string | undefined;
  #signedOutAt = Number.NEGATIVE_INFINITY;

  constructor(options: ClientOptions) {
    const { clientId, prefix = '/token-handler', poll = 60_000 } = options;
    this.#options = options;
    this.#ownOf = createOwnership(options);
    this.#root = `${location.origin}${prefix}/`;
    this.#clientRoot = `${this.#root}clients/${encodeURIComponent(clientId)}`;
    this.#key = `formgate ${prefix}`;
    this.#channel = new BroadcastChannel(this.#key);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => {
      this.#learn(data);
      // The other tab may have failed to reach the logout endpoint, so check whether the session has really ended.
      if (data.type === 'signed-out') setTimeout(this.#readQuietly, 5_000);
    };
    const { signal } = this.#closing;
    // A page that slept, or that the back button restored, may show data of a session that has ended.
    addEventListener('pageshow', ({ persisted }) => persisted && this.#readQuietly(), { signal });
    const isOld = () => !document.hidden && Date.now() - this.#learntAt > 10_000;
    document.addEventListener('visibilitychange', () => isOld() && this.#readQuietly(), { signal });
    // The lock lets only one tab of the site poll. Pages on plain HTTP have no locks, so each of their tabs polls.
    const pollUntilClosed = () => this.#poll(poll);
    void (navigator.locks?.request(this.#key, { signal }, pollUntilClosed) ?? pollUntilClosed()).catch(() => undefined);
    this.#readQuietly();
  }

  /** The current session: undefined until the first read, null if nobody is signed in. */
  get session(): Session | null | undefined {
    return this.#session;
  }

  /**
   * Calls the listener for each event, and immediately if the session is known. Returns a function that removes the
   * listener.
   */
  on(listener: (event: SessionEvent) => void): () => void {
    this.#listeners.add(listener);
    const session = this.#session;
    if (session !== undefined) listener(session ? { type: 'signed-in', session } : { type: 'signed-out' });
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reads the session without extending it. If the server cannot be reached, rejects and leaves `session` unchanged.
   */
  read(): Promise<Session | null> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /**
   * Like the browser's `fetch`, but adds the CSRF header to requests to the token handler, except GET. If a request to
   * the token handler gets a 401, the client emits `unauthorized`.
   */
  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    if (!request.url.startsWith(this.#root)) return fetch(request);
    if (request.method !== 'GET') {
      // If the browser has lost the cookie, reading the session sets it again.
      if (!csrfToken()) await this.read().catch(() => undefined);
      request.headers.set('X-XSRF-TOKEN', csrfToken());
    }
    const response = await fetch(request);
    if (response.status === 401) {
      this.#emit({ type: 'unauthorized', url: request.url });
      this.#readQuietly();
    }
    return response;
  };

  /** Returns the address that starts a sign-in and comes back to this page. */
  signInUrl({ returnTo = location.href.slice(location.origin.length), ...more }: SignIn = {}): string {
    const { tenant } = this.#options;
    const query = { ...(tenant && { tenant }), callbackUrl: `${this.#clientRoot}/callback`, returnTo, ...more };
    return `${this.#clientRoot}/auth?${new URLSearchParams(query)}`;
  }

  /** Leaves the page for `signInUrl`. Before that, stores the result of the option `keep` in `sessionStorage`. */
  signIn(signIn?: SignIn): void {
    const kept = this.#options.keep?.();
    if (kept !== undefined) sessionStorage.setItem(this.#key, JSON.stringify([this.#person ?? null, kept]));
    location.assign(this.signInUrl(signIn));
  }

  /**
   * Returns the kept value, but only once. A value that a signed-in person typed is returned only to that person. Call
   * this method when somebody is signed in.
   */
  restore(): unknown {
    const text = this.#session && sessionStorage.getItem(this.#key);
    if (!text) return undefined;
    sessionStorage.removeItem(this.#key);
    const [typist, kept] = JSON.parse(text);
    return typist === null || typist === this.#person ? kept : undefined;
  }

  /**
   * Returns the reason why the last sign-in failed, such as `login_required`. Only the first call returns it, because
   * that call removes `error` from the address.
   */
  signInError(): string | null {
    const url = new URL(location.href);
    const error = url.searchParams.get('error');
    if (!/^(\w+_required|access_denied)$/.test(error ?? '')) return null;
    url.searchParams.delete('error');
    history.replaceState(history.state, '', url);
    return error;
  }

  /** Ends the session in all tabs, and leaves the page for a path on this site. */
  signOut(returnTo = '/'): void {
    // The second click of a double click would cancel the first request, and with it the redirect to the identity
    // provider. By then, the session has ended, so the second request is not redirected there.
    if (performance.now() - this.#signedOutAt < 2_000) return;
    this.#signedOutAt = performance.now();
    const address = this.#session?.logoutUrl ?? `${this.#clientRoot}/logout`;
    sessionStorage.removeItem(this.#key);
    this.#tell(null, 'signed-out');
    location.assign(`${address}?${new URLSearchParams({ returnTo })}`);
  }

  /** Stops polling and listening. */
  close(): void {
    this.#closing.abort();
    this.#channel.close();
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  #emit(event: SessionEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        reportError(error);
      }
    }
  }

  readonly #readQuietly = () => void this.read().catch(() => undefined);

  async #read(): Promise<Session | null> {
    const begun = this.#changes;
    const response = await fetch(`${this.#root}sessions`, { cache: 'no-store', signal: this.#closing.signal });
    if (!response.ok && response.status !== 401) throw new Error(`${response.url} responded ${response.status}`);
    const found: Session | null = response.ok ? (await response.json())[0] : null;
    // A report of another tab since this request began, such as a sign-out, is newer than this response.
    if (begun !== this.#changes) return this.#session ?? null;
    const date = response.headers.get('Date');
    if (date) this.#offset = Date.parse(date) - Date.now();
    this.#tell(found);
    return this.#session ?? null;
  }

  #tell(session: Session | null, type: Message['type'] = 'expired'): void {
    if (this.#closing.signal.aborted) return;
    const message = { session, offset: this.#offset, type };
    this.#channel.postMessage(message);
    this.#learn(message);
  }

  #learn({ session: found, offset, type }: Message): void {
    const before = this.#session;
    // Tabs of all clients of this site share the channel, so this may be another client's session.
    const session = found && this.#ownOf(found);
    this.#sessionOfSite = found;
    this.#session = session;
    this.#offset = offset;
    this.#learntAt = Date.now();
    this.#changes += 1;
    if (session) this.#person = session.person ?? `${session.tenantId} ${session.email ?? session.name}`;
    if (session && session.id !== before?.id) this.#emit({ type: 'signed-in', session });
    if (!session && before !== null) this.#emit({ type: before ? type : 'signed-out' });
    this.#schedule();
  }

  #remaining(): number {
    return Date.parse(this.#session?.expiry ?? '') - Date.now() - this.#offset;
  }

  /** Sets the timer for the warning or for the end of the session, and emits the warning when it is due. */
  #schedule(): void {
    clearTimeout(this.#timer);
    const session = this.#session;
    if (!session || this.#closing.signal.aborted) return;
    const { warn = 120_000 } = this.#options;
    const remaining = this.#remaining();
    // The end is checked a second late, because the Date header has no fractions of a second. A timer cannot run longer
    // than 2^31 - 1 ms.
    const wait = remaining > warn ? remaining - warn : Math.max(remaining, 0) + 1000;
    this.#timer = setTimeout(() => void this.#confirm(), Math.min(wait, 2 ** 31 - 1));
    if (remaining > warn || this.#warned === session.expiry) return;
    this.#warned = session.expiry;
    this.#emit({ type: 'expiring', session, remaining });
  }

  /** When the timer fires, reads the session first: a request of any tab may have extended it. */
  async #confirm(): Promise<void> {
    try {
      await this.read();
    } catch {
      // If the session cannot be read after its expiry, it counts as ended, so that the page hides its data.
      if (this.#remaining() <= 0) this.#tell(null);
      else this.#schedule();
    }
  }

  /** Reads the session every `pause` milliseconds, also for the tabs of other clients. Resolves when it is closed. */
  #poll(pause: number): Promise<void> {
    return new Promise((resolve) => {
      const interval = setInterval(() => this.#sessionOfSite && this.#readQuietly(), pause);
      this.#closing.signal.addEventListener('abort', () => resolve(clearInterval(interval)));
    });
  }
}

function csrfToken(): string {
  return /(?:^|; )XSRF-TOKEN=([^;]*)/.exec(document.cookie)?.[1] ?? '';
}
