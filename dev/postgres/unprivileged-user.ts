// Chooses the account that Postgres runs as, because Postgres refuses to run as root. The account must already exist;
// this module never creates one, which would change the machine permanently.
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The account that a child process runs as. */
export interface UnprivilegedUser {
  name: string;
  uid: number;
  gid: number;
}

const candidates = ['postgres', 'nobody', 'daemon'];

/**
 * Returns the account for Postgres if this process runs as root. Otherwise returns undefined, and Postgres runs as the
 * current account.
 */
export async function findUnprivilegedUser(): Promise<UnprivilegedUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = parseAccounts(await readFile('/etc/passwd', 'utf8').catch(() => ''));
  const user = candidates.flatMap((name) => accounts.filter((account) => account.name === name && account.uid > 0))[0];
  if (user) return user;
  throw new Error(
    `Postgres cannot run as root, and none of the accounts ${candidates.join(', ')} exists. Start as another user.`,
  );
}

function parseAccounts(passwd: string): UnprivilegedUser[] {
  return passwd.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** True if every account can enter `path`, which requires search permission on each folder of the path. */
export async function isOpenToAll(path: string): Promise<boolean> {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found && (found.mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
