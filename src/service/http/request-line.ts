// Writes the log line of a request that did not fail: what pino would write, member by member, without its way through
// options, formatters and serializers, which made a fifth of the garbage of a relayed request. Its members are fixed, and
// none has a secret's name, so that there is nothing to mask (`log.ts`).
import pino from 'pino';
import type { Logger } from '../operations/log.ts';

export interface RequestLine {
  requestId: string;
  /** W3C Trace Context */
  traceparent?: string | undefined;
  method: string;
  /** The pattern of the route. */
  route: string;
  status: number;
  /** Milliseconds */
  ms: number;
  tenant?: string | undefined;
  caller?: string | undefined;
}

const { chindingsSym, lsCacheSym, streamSym, timeSym } = pino.symbols;

export function createRequestLog(log: Logger): (line: RequestLine) => void {
  // What pino's own way of writing goes by: the beginning of a line of this level, the time, members of all lines.
  const inner = log as unknown as Record<symbol, unknown>;
  const level = (inner[lsCacheSym] as Record<number, string>)[pino.levels.values.info as number];
  const time = inner[timeSym] as () => string;
  const members = inner[chindingsSym] as string;
  const stream = inner[streamSym] as pino.DestinationStream;
  return ({ requestId, traceparent, method, route, status, ms, tenant, caller }) => {
    if (!log.isLevelEnabled('info')) return;
    let text = `${level}${time()}${members},"requestId":${quoted(requestId)},"method":${quoted(method)}`;
    text += `,"route":${quoted(route)},"status":${status},"ms":${ms}`;
    if (traceparent !== undefined) text += `,"traceparent":${quoted(traceparent)}`;
    if (tenant !== undefined) text += `,"tenant":${quoted(tenant)}`;
    if (caller !== undefined) text += `,"caller":${quoted(caller)}`;
    stream.write(`${text},"msg":"request"}\n`);
  };
}

/** Nothing in it has to be escaped in JSON. */
const plain = /^[\w:./*@ -]*$/;

function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text);
}
