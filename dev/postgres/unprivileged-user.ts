// Whom Postgres runs as. Postgres refuses to run as root, so root lends it an account that exists already; no account is
// ever created, because that would change the machine for good.
import { readFile, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** The account that a child process takes on. */
export interface UnprivilegedUser {
  name: string;
  uid: number;
  gid: number;
}

const candidates = ['postgres', 'nobody', 'daemon'];

/** The account for Postgres when this process is root; undefined when it is not, for then Postgres runs as we do. */
export async function findUnprivilegedUser(): Promise<UnprivilegedUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = parseAccounts(await readFile('/etc/passwd', 'utf8').catch(() => ''));
  const user = candidates.flatMap((name) => accounts.filter((account) => account.name === name && account.uid > 0))[0];
  if (user) return user;
  throw new Error(
    `Postgres cannot run as root, and this machine has none of the accounts ${candidates.join(', ')}: start as another user.`,
  );
}

function parseAccounts(passwd: string): UnprivilegedUser[] {
  return passwd.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** Whether any account may enter `path`: each folder on the way there lets everyone through. */
export async function isOpenToAll(path: string): Promise<boolean> {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = await stat(folder).catch(() => undefined);
    if (found && (found.mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
