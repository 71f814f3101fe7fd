// Tests who may do what with a form, for each person, action and status, without a server.
import { describe, expect, it } from 'vitest';
import type { Caller } from '../../service/auth/identity.ts';
import { Problem } from '../../service/http/problem.ts';
import { type Action, formStatuses } from './catalogue.ts';
import type { Form, Tombstone } from './form.ts';
import { decide, decideCreate, needsDefinition, refuseDeleted, requireOpenIntake, statusesOf } from './policy.ts';

const issuer = 'https://access.example.org/auth/realms/demo';
const caller = (subject: string, ...roles: string[]): Caller => ({
  ...{ subject, name: subject, issuer, realm: 'demo', clientId: 'app', isCore: false },
  roles: new Set(roles),
});
const definition = { applicantRoles: ['resident', 'visitor'], assessorRoles: ['assess'], clerkRoles: ['desk'] };

const people = {
  admin: caller('ada', 'form-admin'),
  intake: caller('kiosk', 'intake-application'),
  creator: caller('carla', 'visitor'),
  // The creator of the form, but without the role that lets a person apply.
  formerApplicant: caller('carla'),
  // The same subject at another issuer is another person.
  namesake: { ...caller('carla', 'resident'), issuer: 'https://other.example.org' },
  otherApplicant: caller('otto', 'resident'),
  clerk: caller('clara', 'desk'),
  clerkAndCreator: caller('carla', 'desk'),
  assessor: caller('ines', 'assess'),
  assessorAndCreator: caller('carla', 'assess', 'visitor'),
  stranger: caller('eve', 'something'),
};
type Who = keyof typeof people;

const form = (status: Form['status'], anonymousApplicant = false): Form => ({
  ...{ id: '0198b8a0-0000-7000-8000-000000000001', tenantId: 'urn:tenant', definitionId: 'permit', status },
  ...{ created: new Date(0), createdBy: { id: 'carla', name: 'Carla' }, issuer, anonymousApplicant, forAnother: false },
  ...{ applicant: { channels: [] }, subscriberId: null, lastAccessed: new Date(0), locked: null, submitted: null },
  ...{ held: false, holdReason: null, heldBy: null, revision: '1' },
});

/** Returns the role in which the person performs the action, or the slug of the problem. */
function outcome(action: Action, who: Who, of: Form): string {
  return slugOf(() => decide(action, people[who], of, definition));
}

function slugOf(attempt: () => string): string {
  try {
    return attempt();
  } catch (error) {
    if (error instanceof Problem) return error.slug;
    throw error;
  }
}

/** The outcomes in the statuses Draft, Locked, Submitted and Archived. */
const of = (action: Action, who: Who, anonymous = false) =>
  formStatuses.map((status) => outcome(action, who, form(status, anonymous))).join(' ');
const always = (text: string) => `${text} ${text} ${text} ${text}`;

describe('a form of a person with an account', () => {
  it.each<[Action, Who, string]>([
    ['read', 'admin', always('admin')],
    ['read', 'creator', always('applicant')],
    ['read', 'formerApplicant', always('forbidden')],
    ['read', 'namesake', always('forbidden')],
    ['read', 'otherApplicant', always('forbidden')],
    ['read', 'clerk', always('clerk')],
    ['read', 'clerkAndCreator', always('applicant')],
    ['read', 'assessor', always('assessor')],
    ['read', 'intake', always('forbidden')],
    ['read', 'stranger', always('forbidden')],
    ['read-data', 'creator', 'applicant form-locked applicant applicant'],
    ['read-data', 'clerk', 'clerk form-locked forbidden forbidden'],
    ['read-data', 'clerkAndCreator', 'applicant form-locked applicant applicant'],
    ['read-data', 'assessor', 'forbidden forbidden assessor assessor'],
    ['read-data', 'assessorAndCreator', 'applicant form-locked applicant applicant'],
    ['update-data', 'admin', always('forbidden')],
    ['update-data', 'creator', 'applicant form-locked form-not-draft form-not-draft'],
    ['update-data', 'clerk', 'clerk form-locked form-not-draft form-not-draft'],
    ['update-data', 'assessor', always('forbidden')],
    ['submit', 'otherApplicant', always('forbidden')],
    ['delete', 'formerApplicant', 'creator form-locked form-not-draft form-not-draft'],
    ['delete', 'namesake', always('forbidden')],
    ['delete', 'clerk', always('forbidden')],
    ['delete', 'admin', always('admin')],
    ['to-draft', 'assessor', always('assessor')],
    ['to-draft', 'creator', always('forbidden')],
    ['unlock', 'assessor', always('forbidden')],
  ])('%s by %s', (action, who, expected) => {
    expect(of(action, who)).toBe(expected);
  });
});

describe('a form of a person without an account', () => {
  it.each<[Action, Who, string]>([
    ['read', 'intake', always('intake')],
    ['read-data', 'intake', 'intake form-locked intake intake'],
    ['update-data', 'intake', 'intake form-locked form-not-draft form-not-draft'],
    ['delete', 'intake', 'intake form-locked form-not-draft form-not-draft'],
    // The account that created the form for an anonymous applicant has no rights as its creator.
    ['read', 'creator', always('forbidden')],
    ['delete', 'formerApplicant', always('forbidden')],
    ['read', 'clerk', always('clerk')],
    ['update-data', 'clerkAndCreator', 'clerk form-locked form-not-draft form-not-draft'],
  ])('%s by %s', (action, who, expected) => {
    expect(of(action, who, true)).toBe(expected);
  });
});

it('a conflict names the status, which a client shows to its user', () => {
  try {
    decide('update-data', people.creator, form('Submitted'), definition);
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ slug: 'form-not-draft', members: { formStatus: 'Submitted' } });
  }
});

it('a role in which an action is not in the catalogue has no status for it', () => {
  expect(statusesOf('read-history', 'clerk')).toEqual([]);
  expect(statusesOf('update-data', 'clerk')).toEqual(['Draft']);
});

it('an intake application learns which forms it may use, other callers do not', () => {
  const detail = (who: Who, anonymous: boolean) => {
    try {
      return decide('submit', people[who], form('Draft', anonymous), definition);
    } catch (error) {
      return (error as Problem).detail;
    }
  };
  expect(detail('intake', false)).toContain('without an account');
  expect(detail('stranger', false)).toMatch(/^The caller may not (?!.*account)/);
  expect(decide('submit', people.intake, form('Draft', true), definition)).toBe('intake');
  // No intake application may perform this action, so the detail must not name the forms that an intake application may
  // use.
  const refused = refuseDeleted(
    'read-history',
    people.intake,
    { definitionId: 'permit', anonymousApplicant: true },
    {
      ...definition,
    },
  );
  expect(refused.detail).not.toContain('without an account');
});

it('without the definition, nobody has a role that the definition names', () => {
  expect(slugOf(() => decide('read', people.clerk, form('Draft'), undefined))).toBe('forbidden');
  expect(slugOf(() => decide('read', people.admin, form('Draft'), undefined))).toBe('admin');
});

describe('the definition is fetched only if it could matter', () => {
  it.each<[Action, Who, boolean]>([
    ['read', 'admin', false],
    ['read', 'clerk', true],
    ['read', 'stranger', true],
    ['read-history', 'stranger', false],
    ['update-data', 'admin', true],
    ['delete', 'creator', false],
  ])('%s by %s: %s', (action, who, expected) => {
    expect(needsDefinition(action, people[who], form('Draft'))).toBe(expected);
  });

  it('and never for an intake application that may act without it', () => {
    expect(needsDefinition('update-data', people.intake, form('Draft', true))).toBe(false);
  });
});

describe('a deleted form is gone for those who could have used it, and forbidden for others', () => {
  const tombstone = (anonymousApplicant: boolean): Tombstone => ({ definitionId: 'permit', anonymousApplicant });
  it.each<[Action, Who, boolean, string]>([
    ['read', 'admin', false, 'gone'],
    ['read', 'clerk', false, 'gone'],
    ['read', 'otherApplicant', false, 'gone'],
    ['read', 'stranger', false, 'forbidden'],
    ['delete', 'stranger', false, 'gone'],
    ['delete', 'stranger', true, 'forbidden'],
    ['read', 'intake', true, 'gone'],
    ['read', 'intake', false, 'forbidden'],
    ['delete', 'intake', false, 'forbidden'],
    ['read-history', 'clerk', false, 'forbidden'],
  ])('%s by %s (anonymous: %s): %s', (action, who, anonymous, expected) => {
    expect(refuseDeleted(action, people[who], tombstone(anonymous), definition).slug).toBe(expected);
  });

  it('is gone for everybody who could have been its applicant if the definition was removed', () => {
    const without = (who: Who, anonymous: boolean) =>
      refuseDeleted('read-data', people[who], tombstone(anonymous), undefined).slug;
    expect(without('creator', false)).toBe('gone');
    expect(without('creator', true)).toBe('forbidden');
    expect(without('intake', false)).toBe('forbidden');
  });
});

describe('outside of the intake window', () => {
  const now = new Date('2026-10-01T00:00:00Z');
  const opens = new Date('2026-11-01T00:00:00Z');
  const closes = new Date('2026-12-01T00:00:00Z');
  const permit = { name: 'Permit', clerkRoles: ['desk', 'mail'] };
  const apply = (who: Who, intake: object[] | null, submitted?: Date | null) =>
    slugOf(() => {
      const formOf = submitted === undefined ? undefined : { submitted };
      requireOpenIntake(people[who], { ...permit, intake: intake as never }, now, formOf);
      return 'open';
    });

  it('applicants are refused, and learn the dates', () => {
    const closed = (intake: object[]) => {
      try {
        requireOpenIntake(people.creator, { ...permit, intake: intake as never }, now);
        return expect.unreachable();
      } catch (error) {
        const { slug, detail, members } = error as Problem;
        return { slug, detail, members };
      }
    };
    expect(closed([{ opens, closes }])).toEqual({
      slug: 'intake-closed',
      detail: 'Applications for “Permit” are taken from 2026-11-01T00:00:00.000Z until 2026-12-01T00:00:00.000Z.',
      members: { opens: opens.toISOString(), closes: closes.toISOString() },
    });
    expect(closed([{ opens }])).toMatchObject({
      detail: 'Applications for “Permit” are taken from 2026-11-01T00:00:00.000Z.',
      members: { opens: opens.toISOString(), closes: null },
    });
    expect(closed([{ closes: new Date('2026-09-01T00:00:00Z') }])).toMatchObject({
      detail: 'Applications for “Permit” are taken until 2026-09-01T00:00:00.000Z.',
      members: { opens: null, closes: '2026-09-01T00:00:00.000Z' },
    });
    // A list without windows is never open.
    expect(closed([])).toMatchObject({ slug: 'intake-closed', members: { opens: null, closes: null } });
  });

  it('clerks enter what arrived in time, and returned forms can be corrected', () => {
    expect(apply('creator', [{ opens }], null)).toBe('intake-closed');
    expect(apply('clerk', [{ opens }])).toBe('open');
    expect(apply('creator', [{ opens }], new Date(0))).toBe('open');
    expect(apply('creator', null)).toBe('open');
    expect(apply('creator', [{ closes }])).toBe('open');
  });
});

describe('creating a form', () => {
  const rules = { ...definition, anonymousApply: true };
  const both = caller('bob', 'desk', 'resident');
  it.each<[string, Caller, boolean, boolean, string]>([
    ['an intake application', people.intake, true, false, 'intake'],
    ['an intake application where accounts are required', people.intake, false, false, 'forbidden'],
    [
      'an intake application with a role that may apply, which could not use the form',
      caller('k', 'intake-application', 'visitor'),
      false,
      false,
      'forbidden',
    ],
    ['an applicant', people.creator, true, false, 'applicant'],
    ['an applicant for another person', people.creator, true, true, 'applicant'],
    ['a clerk', people.clerk, true, false, 'clerk'],
    ['a clerk who may also apply', both, true, false, 'applicant'],
    ['a clerk who may also apply, for another person', both, true, true, 'clerk'],
    ['an administrator', people.admin, true, false, 'forbidden'],
    ['an assessor', people.assessor, true, false, 'forbidden'],
  ])('%s', (_who, by, anonymousApply, forAnother, expected) => {
    expect(slugOf(() => decideCreate(by, { ...rules, anonymousApply }, forAnother))).toBe(expected);
  });

  it('tells an intake application that the definition does not permit it', () => {
    const detail = (by: Caller) => {
      try {
        return decideCreate(by, { ...rules, anonymousApply: false }, false);
      } catch (error) {
        return (error as Problem).detail;
      }
    };
    expect(detail(people.intake)).toContain('without an account');
    expect(detail(people.stranger)).toMatch(/^The caller has none of the roles/);
  });
});
