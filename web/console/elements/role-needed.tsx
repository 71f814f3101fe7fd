// Explains which role an area or an action needs, and who can give it.
import { type Role, roleText } from '../session/roles.ts';

export function RoleNeeded({ roles, to }: { roles: readonly Role[]; to: string }) {
  return (
    <div class="note">
      <p>
        To {to}, you need the role {roles.map(roleText).join(' or ')}. Your account does not have it. An administrator
        of the realm grants roles at the identity provider. Then sign out and in again.
      </p>
    </div>
  );
}
