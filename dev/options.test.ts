// Tests the command line and the environment of `npm start` and `npm run demo`.
import { expect, it } from 'vitest';
import { UsageError } from '../src/service/operations/command-line.ts';
import { demoCommand, parseStartOptions } from './options.ts';

it('by default, the port is 8080 and the data is stored in .formgate in the project', () => {
  const options = parseStartOptions([], {});
  expect(options).toMatchObject({ port: 8080, fresh: false, help: false, urnPrefix: 'urn:example' });
  expect(options.directory).toMatch(/\/\.formgate$/);
});

it('PORT, FORMGATE_DATA, URN_PREFIX, REDIS_URL, --fresh and --help are read', () => {
  const env = { PORT: '9000', FORMGATE_DATA: '/tmp/data', URN_PREFIX: 'urn:ads', REDIS_URL: 'redis://redis' };
  const expected = {
    ...{ port: 9000, directory: '/tmp/data', urnPrefix: 'urn:ads', redisUrl: 'redis://redis' },
    ...{ fresh: true, help: true },
  };
  expect(parseStartOptions(['--fresh', '--help'], env)).toEqual(expected);
});

it.each(['http', '-1', '65536', '80a', '1e3'])('PORT=%s is refused in one line', (port) => {
  expect(() => parseStartOptions([], { PORT: port })).toThrow(UsageError);
});

it.each([['--frehs'], ['fresh'], ['--fresh=yes']])('an unknown argument %s is refused in one line', (argument) => {
  expect(() => parseStartOptions([argument], {})).toThrow(/^.+ See --help\.$/);
});

it.each([
  ['http://localhost:8080', 'npm run demo'],
  ['http://localhost:9000', 'PORT=9000 npm run demo'],
  ['http://localhost:80', 'PORT=80 npm run demo'],
])('the command of the demo for %s is %s', (publicUrl, command) => {
  expect(demoCommand(publicUrl)).toBe(command);
});
