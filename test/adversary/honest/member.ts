// A signed-in person: calls an upstream through the token handler, sends and receives bodies, and keeps an event stream
// open. The upstream must always see this person as the caller.
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { type Person, signIn } from '../world/sign-in.ts';
import { checksumOf, downloadOf, type Seen } from '../world/upstream.ts';
import { live, type Surroundings, think } from './persona.ts';
import { mustSee, Unserved } from './recorder.ts';
import { createSender, describeProblem, type Sender } from './requests.ts';

const bodyBytes = 128 * 1024;
const expectedDownload = downloadOf(bodyBytes);

export async function liveAsMember(around: Surroundings, name: string): Promise<void> {
  const site = around.world.addresses.fronts['token-handler'];
  const person = await signIn(site, `${name}@example.com`);
  const own = { cookie: person.cookie, 'x-xsrf-token': person.csrf, 'x-forwarded-for': `10.3.0.${name.length}` };
  const asker = createSender(own);
  await Promise.all([work(around, asker, person), watchEvents(around, person, own)]);
  asker.close();
}

async function work(around: Surroundings, { send }: Sender, { email }: Person): Promise<void> {
  const { recorder, random, world } = around;
  const site = world.addresses.fronts['token-handler'];
  const api = `${site}/token-handler/v1/targets/api`;
  const mustBeOwn = (json: unknown) =>
    mustSee((json as Seen).email === email, `the upstream saw ${(json as Seen).email} instead of ${email}`);
  const get = () =>
    recorder.measure('target GET', async () => mustBeOwn((await send(`${api}/whoami?${random.word(5)}`)).json));
  const post = (size: number) =>
    recorder.measure(size >= bodyBytes ? 'upload' : 'target POST', async () => {
      const body = random.bytes(Math.min(size, 2_000));
      const whole = Buffer.alloc(size, body);
      const { json } = await send(`${api}/echo`, { method: 'POST', body: whole });
      mustBeOwn(json);
      const isSame = (json as Seen).bodyBytes === size && (json as Seen).checksum === checksumOf(whole);
      mustSee(isSame, 'an upload arrived with other bytes');
    });
  const download = () =>
    recorder.measure('download', async () => {
      const { bytes } = await send(`${api}/download?bytes=${bodyBytes}`);
      mustSee(bytes.equals(expectedDownload), 'a download arrived with other bytes');
    });
  const readSessions = () =>
    recorder.measure('sessions', async () => {
      const { json } = await send(`${site}/token-handler/v1/sessions`);
      mustSee((json as { email?: string }[])[0]?.email === email, 'the first session belongs to another person');
    });
  await live(around, async () => {
    for (const step of [get, () => post(2_000), get, () => post(bodyBytes), get, download, readSessions]) {
      await step();
      await think(around);
    }
  });
}

/**
 * Milliseconds without an event after which a stream counts as broken; the upstream sends an event every second. A
 * broken stream is attributed to every phase of the last 5 s, because a fault may end the stream late: the token
 * handler ends it only when Redis has not confirmed the session for 4 s.
 */
const longestSilence = 5_000;

/** Keeps an event stream open, and reconnects when it ends. An unexplained end is a failure. */
async function watchEvents(around: Surroundings, { email }: Person, headers: Record<string, string>): Promise<void> {
  const { recorder, signal, world } = around;
  const url = `${world.addresses.fronts['token-handler']}/token-handler/v1/targets/api/events`;
  const agent = new Agent({ headersTimeout: 15_000, bodyTimeout: longestSilence });
  while (!signal.aborted) {
    const stream = await recorder
      .measure('events', async () => {
        const response = await request(url, { headers, dispatcher: agent, signal });
        if (response.statusCode === 200) return response.body;
        const text = await response.body.text();
        const hasRetryAfter = response.headers['retry-after'] !== undefined;
        throw new Unserved(`events got ${describeProblem(response.statusCode, text)}`, {
          ...{ status: response.statusCode, hasRetryAfter, isWrong: response.statusCode === 401 },
        });
      })
      .catch(() => undefined);
    const problem = stream && (await readEvents(stream, email));
    if (problem !== undefined && !signal.aborted)
      recorder.fail(
        { kind: 'events', status: 0, hasRetryAfter: false, ...problem },
        performance.now() - longestSilence,
      );
    if (!signal.aborted) await delay(300);
  }
  void agent.destroy().catch(() => undefined);
}

/** Reads events until the stream ends, or an event of another person arrives. Returns what went wrong. */
async function readEvents(stream: AsyncIterable<Buffer>, email: string): Promise<{ what: string; isWrong: boolean }> {
  let received = '';
  try {
    for await (const chunk of stream) {
      const lines = (received + chunk.toString()).split('\n');
      received = lines.pop() ?? '';
      if (lines.some((line) => line.startsWith('data:') && !line.includes(`"email":"${email}"`)))
        return { what: 'an event of another person arrived', isWrong: true };
    }
    return { what: 'an event stream ended unexpectedly', isWrong: false };
  } catch (error) {
    return { what: (error as Error).message, isWrong: false };
  }
}
