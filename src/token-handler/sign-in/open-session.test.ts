// Tests which claims of the tokens describe the person of a session.
import { describe, expect, it } from 'vitest';
import { describePerson } from './open-session.ts';

const sub = '9d1c';

describe('the person of a session', () => {
  it('has the subject as id, and the name, user name or subject as name', () => {
    const claims = { sub, name: 'Ana Ares', preferred_username: 'ana' };
    expect(describePerson(claims, {})).toEqual({ id: sub, name: 'Ana Ares', roles: [] });
    expect(describePerson({ sub, name: '', preferred_username: 'ana' }, {}).name).toBe('ana');
    expect(describePerson({ sub, name: 1 }, { name: 'Somebody' }).name).toBe(sub);
  });

  it('has the email of the ID token, or else of the access token', () => {
    const [one, other] = [{ email: 'ana@example.org' }, { email: 'other@example.org' }];
    expect(describePerson({ sub, ...one }, other).email).toBe(one.email);
    expect(describePerson({ sub }, other).email).toBe(other.email);
    expect(describePerson({ sub, email: null }, {})).not.toHaveProperty('email');
  });

  it('was authenticated by the identity provider that either token names', () => {
    const [one, other] = [{ identity_provider: 'one' }, { identity_provider: 'other' }];
    expect(describePerson({ sub, ...one }, other).authenticatedBy).toBe('one');
    expect(describePerson({ sub }, other).authenticatedBy).toBe('other');
    expect(describePerson({ sub }, { identity_provider: ['x'] })).not.toHaveProperty('authenticatedBy');
  });
});
