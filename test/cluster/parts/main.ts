// Runs the identity provider and the mailbox of `npm start` in a pod, because the chart contains neither. For tests
// only: the mail is public, and all data is lost with the pod.
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import express from 'express';
import { createAccessService } from '../../../dev/access/access.ts';
import { defaultRealms } from '../../../dev/access/default-realms.ts';
import { openMailbox } from '../../../dev/mailbox/mailbox.ts';
import { createMailboxRoutes } from '../../../dev/mailbox/routes.ts';
import { systemClock } from '../../../src/service/clock.ts';
import { createUrns } from '../../../src/service/urn.ts';
import { createMemoryEntityStore } from '../../support/memory-entity-store.ts';

const httpPort = 8080;
const smtpPort = 2525;

/** PUBLIC_URL ends in /auth. SERVICE_SECRET is the client secret of every service account in the realm core. */
const { PUBLIC_URL = '', SERVICE_SECRET = '' } = process.env;

const access = await createAccessService({
  publicUrl: PUBLIC_URL,
  store: createMemoryEntityStore(systemClock),
  cookieKeys: [SERVICE_SECRET],
});
for (const realm of defaultRealms({ urns: createUrns('urn:example'), serviceSecret: () => SERVICE_SECRET }))
  await access.addRealm(realm);
const mailbox = await openMailbox({ clock: systemClock });

// Forwards mail from other pods to the mailbox, which listens on loopback only.
createTcpServer((socket) => {
  const inner = connect(mailbox.port, '127.0.0.1');
  socket.on('error', () => inner.destroy());
  inner.on('error', () => socket.destroy());
  socket.pipe(inner).pipe(socket);
}).listen(smtpPort, '0.0.0.0');

const app = express();
app.get('/', (_req, res) => void res.type('text/plain').send('The root of a frontend.\n'));
app.get('/who', (req, res) => void res.json({ headers: req.headers }));
app.use('/mailbox', createMailboxRoutes(mailbox.messages));
app.use(access.app);
const server = createServer(app).listen(httpPort, '0.0.0.0');
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    server.close();
    process.exit(0);
  });
