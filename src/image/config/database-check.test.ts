import { expect, it } from 'vitest';
import { serverProblems } from './database-check.ts';

const facts = { version: 15, isStandby: false, mayCreate: true, connections: 10 };

it('Postgres 15 or newer is accepted, and an older version is an error', () => {
  for (const version of [15, 16, 19]) expect(serverProblems({ ...facts, version }, 10)).toEqual([]);
  expect(serverProblems({ ...facts, version: 14 }, 10)).toEqual([
    { severity: 'error', name: 'DATABASE_URL', problem: 'Postgres 14 is too old: 15 or newer is needed' },
  ]);
});

it('a standby is an error', () => {
  expect(serverProblems({ ...facts, isStandby: true }, 10)).toEqual([
    { severity: 'error', name: 'DATABASE_URL', problem: 'the database is a standby, which refuses writes' },
  ]);
});

it('a database that allows fewer connections than a process may open is an error', () => {
  expect(serverProblems({ ...facts, connections: 9 }, 10)).toMatchObject([{ name: 'DATABASE_POOL_SIZE' }]);
});
