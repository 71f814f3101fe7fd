// The gateway of `npm start`. It listens on one port and routes each request to its component, as an ingress does in a
// cluster. It also forwards HTTP upgrades to the token handler, and adds the API version to the paths of the token
// handler. It refuses requests for host names other than those of this machine.
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { html } from '../src/service/openapi/html.ts';
import { homePage } from './home-page.ts';
import type { MessageStore } from './mailbox/message-store.ts';
import { createMailboxRoutes } from './mailbox/routes.ts';
import { demoCommand } from './options.ts';
import { type Page, pageHeaders, renderPage } from './pages/layout.ts';

/** Addresses of the child processes, such as `http://127.0.0.1:41234`. */
export interface Targets {
  platformServer: string;
  forms: string;
  tokenHandler: string;
}

export interface GatewayOptions {
  /** Express app of the embedded identity provider, for paths below `/auth`. */
  access: express.Express;
  messages: MessageStore;
  targets: Targets;
  /** Resolves to the readiness of each component, keyed by the component's name. */
  parts(): Promise<Record<string, boolean>>;
  /** Address of the gateway, such as `http://localhost:8080`. */
  publicUrl: string;
}

const platformPaths = ['/configuration/v2', '/directory/v2', '/api/tenant/v2', '/subscription/v1', '/event/v1'];
const formPaths = ['/form/v1', '/apply', '/console', '/docs', '/openapi.json', '/problems', '/swagger'];
const tokenHandlerPaths = ['/token-handler'];
/**
 * Paths of the token handler's API documentation. They are below `/token-handler`, because `/docs` and similar paths
 * belong to the form service.
 */
const tokenHandlerDocuments = ['/token-handler/docs', '/token-handler/openapi.json', '/token-handler/swagger'];

export interface Gateway {
  app: express.Express;
  /** Listener for the server's `upgrade` event. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export function createGateway(gateway: GatewayOptions): Gateway {
  const tokenHandler = forward(gateway.targets.tokenHandler, tokenHandlerPaths, withVersion);
  return {
    app: createApp(gateway, tokenHandler),
    upgrade: (request, socket, head) => {
      // An error of the socket means that the client has disconnected.
      socket.on('error', () => socket.destroy());
      const isOurs = isLocalHost(request.headers.host) && leadsTo(request.url ?? '', tokenHandlerPaths);
      if (isOurs) tokenHandler.upgrade(request as express.Request, socket as Socket, head);
      else socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n');
    },
  };
}

function createApp(gateway: GatewayOptions, tokenHandler: express.RequestHandler): express.Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(refuseForeignHosts);
  app.get('/health', async (_req, res) => {
    const parts = await gateway.parts();
    res
      .set('Cache-Control', 'no-store')
      .status(Object.values(parts).every(Boolean) ? 200 : 503)
      .json(parts);
  });
  app.get('/', async (_req, res) => {
    const page = homePage({ publicUrl: gateway.publicUrl, parts: await gateway.parts() });
    res.set(pageHeaders(page)).send(renderPage(page));
  });
  app.use('/mailbox', createMailboxRoutes(gateway.messages, demoCommand(gateway.publicUrl)));
  app.use(
    forward(gateway.targets.platformServer, platformPaths),
    forward(gateway.targets.forms, formPaths),
    forward(gateway.targets.tokenHandler, tokenHandlerDocuments, (path) => path.replace('/token-handler', '')),
    tokenHandler,
  );
  app.use(gateway.access);
  app.use((_req, res) => {
    const body = html`<main class="card"><h1>Page not found</h1><p><a href="/">Start page</a></p></main>`;
    const page: Page = { title: 'Page not found', width: 'narrow', body };
    res.status(404).set(pageHeaders(page)).send(renderPage(page));
  });
  return app;
}

/**
 * Inserts the API version into a path: frontends call `/token-handler/...`, and the token handler serves
 * `/token-handler/v1/...`. Paths that contain the version are not changed.
 */
function withVersion(path: string): string {
  return path.replace(/^\/token-handler(?!\/v1(?:[/?]|$))/, '/token-handler/v1');
}

function leadsTo(path: string, prefixes: string[]): boolean {
  const [written = ''] = path.split('?');
  return prefixes.some((prefix) => written === prefix || written.startsWith(`${prefix}/`));
}

function forward(target: string, paths: string[], pathRewrite?: (path: string) => string) {
  return createProxyMiddleware<express.Request, express.Response>({
    target,
    pathFilter: (path) => leadsTo(path, paths),
    ...(pathRewrite && { pathRewrite }),
    xfwd: true,
    on: {
      error: (_error, req, res) => {
        // For an upgrade, `res` is a socket. If the head of a response was already sent, the response can only be cut
        // off.
        if (!('writeHead' in res) || res.headersSent) return void res.destroy();
        const body = {
          type: 'urn:formgate:problem:unavailable',
          title: 'Service unavailable',
          status: 503,
          detail: 'The service is starting or restarting. Try again in a moment.',
          instance: req.originalUrl.split('?')[0],
        };
        res
          .writeHead(503, { 'Content-Type': 'application/problem+json', 'Retry-After': '2' })
          .end(JSON.stringify(body));
      },
    },
  });
}

/**
 * Protects against DNS rebinding: a hostile page can make its own host name resolve to 127.0.0.1 and read the mailbox.
 * The gateway therefore serves only host names that always mean this machine.
 */
function refuseForeignHosts(req: express.Request, res: express.Response, next: express.NextFunction): void {
  if (isLocalHost(req.headers.host)) next();
  else res.status(421).type('text/plain').send('Formgate accepts requests for localhost only.\n');
}

function isLocalHost(host: string | undefined): boolean {
  return /^(localhost|[a-z0-9-]+\.localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host ?? '');
}
