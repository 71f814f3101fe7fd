import { describe, expect, it } from 'vitest';
import { createLogger, type Logger } from '../operations/log.ts';
import { createRequestLog, type RequestLine } from './request-line.ts';

function capture(level = 'info'): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { log: createLogger({ name: 'main', level, destination: { write } }), lines };
}

const bare: RequestLine = { requestId: 'a-1', method: 'GET', route: '/things/:thingId/*path', status: 200, ms: 1.5 };
const full = { ...bare, traceparent: '00-0a-0b-00', tenant: 'urn:example:t', caller: 'b@"c\\d\n\u2028ü' };

describe('the line of a request', () => {
  it.each([bare, full])('is what pino would write of it, to the byte', (line) => {
    const { log, lines } = capture();
    createRequestLog(log)(line);
    log.info(line, 'request');
    const [ours = '', theirs] = lines.map((text) => text.replace(/"time":"[^"]*"/, '"time":""'));
    expect(ours).toBe(theirs);
    expect(JSON.parse(ours)).toMatchObject({ level: 'info', name: 'main', ...line, msg: 'request' });
  });

  it('has the members that every line of its logger has', () => {
    const { log, lines } = capture();
    createRequestLog(log.child({ replica: 'one' }))(bare);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ replica: 'one', requestId: 'a-1' });
  });

  it('is not written where lines of its level are not', () => {
    const { log, lines } = capture('warn');
    createRequestLog(log)(bare);
    expect(lines).toEqual([]);
  });
});
