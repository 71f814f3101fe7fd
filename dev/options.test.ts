// What may be said on the command line and in the environment.
import { expect, it } from 'vitest';
import { parseStartOptions, UsageError } from './options.ts';

it('without anything said, the port is 8080 and the data lies in .formgate in the project', () => {
  const options = parseStartOptions([], {});
  expect(options).toMatchObject({ port: 8080, fresh: false, help: false, urnPrefix: 'urn:example' });
  expect(options.directory).toMatch(/\/\.formgate$/);
});

it('PORT, FORMGATE_DATA, URN_PREFIX, --fresh and --help are heard', () => {
  const env = { PORT: '9000', FORMGATE_DATA: '/tmp/data', URN_PREFIX: 'urn:ads' };
  const expected = { port: 9000, directory: '/tmp/data', urnPrefix: 'urn:ads', fresh: true, help: true };
  expect(parseStartOptions(['--fresh', '--help'], env)).toEqual(expected);
});

it.each(['http', '-1', '65536', '80a', '1e3'])('PORT=%s is refused in one line', (port) => {
  expect(() => parseStartOptions([], { PORT: port })).toThrow(UsageError);
});

it.each([['--frehs'], ['fresh'], ['--fresh=yes']])(
  'an argument %s that means nothing is refused in one line',
  (argument) => {
    expect(() => parseStartOptions([argument], {})).toThrow(/^.+ See --help\.$/);
  },
);
