// Tests the checks of role names with as many roles as a tenant can configure.
import { expect, it } from 'vitest';
import { parseDefinition } from './definition.ts';
import { roleProblems } from './role-names.ts';

const many = 40_000;

it('a definition with tens of thousands of roles, of a service with as many, is checked in moments', () => {
  const applicantRoles = Array.from({ length: many }, (_, n) => `urn:p:service:role ${n}`);
  const definition = parseDefinition('permit', { applicantRoles: [...applicantRoles, 'urn:p:service:other'] });
  const roles = Array.from({ length: many }, (_, n) => ({ role: `role ${n}` }));
  const { user } = process.threadCpuUsage();
  expect(roleProblems(definition, 'urn:p', [undefined, { 'urn:p:service': { roles } }])).toEqual([
    { pointer: `/applicantRoles/${many}`, detail: 'is not a role of this service' },
  ]);
  expect(process.threadCpuUsage().user - user).toBeLessThan(2_000_000);
});

it('a definition with hundreds of thousands of wrong names gets as many problems as are listed, in moments', () => {
  const definition = parseDefinition('permit', { applicantRoles: ['x', ...Array(250_000).fill(' ')] });
  const { user } = process.threadCpuUsage();
  const problems = roleProblems(definition, 'urn:p', [], 101);
  expect(process.threadCpuUsage().user - user).toBeLessThan(100_000);
  expect(problems).toHaveLength(101);
  expect(problems[0]).toEqual({ pointer: '/applicantRoles/1', detail: 'is empty, so no caller has it' });
});

it('a definition with tens of thousands of invalid roles gets the first hundred problems', () => {
  const parse = () => parseDefinition('permit', { clerkRoles: ['clerk', ...Array(many).fill(1)] });
  expect(parse).toThrow(
    expect.objectContaining({
      slug: 'definition-invalid',
      errors: Array.from({ length: 100 }, (_, n) => ({
        pointer: `/clerkRoles/${n + 1}`,
        detail: 'must be a string',
      })),
    }),
  );
});
