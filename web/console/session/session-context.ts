// Gives every page below the shell the session of the signed-in person.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { hasRole, type Role } from './roles.ts';
import type { Session } from './session.ts';

export interface SignedIn {
  session: Session;
  /** The tenant in the address. */
  tenant: string;
}

export const SignedInContext = createContext<SignedIn | undefined>(undefined);

/** Returns the signed-in person's session and tenant. Throws outside the shell. */
export function useSignedIn(): SignedIn {
  const signedIn = useContext(SignedInContext);
  if (!signedIn) throw new Error('nobody is signed in');
  return signedIn;
}

export function useRole(role: Role): boolean {
  return hasRole(useSignedIn().session, role);
}
