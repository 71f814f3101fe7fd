// The file to which the setup writes the secrets, as a Kubernetes Secret. The file is created before Keycloak is
// changed, and written after each secret, so that no password is lost if the command fails or is interrupted.
import { rmSync, writeFileSync } from 'node:fs';
import { UsageError } from '../../service/operations/command-line.ts';

export interface SecretFile {
  keep(name: string, value: string): void;
  names(): string[];
  /** Removes the file if it contains no secret. Returns true if the file remains. */
  close(): boolean;
}

/** Creates the file, which only its owner may read. Throws UsageError if it exists or cannot be written. */
export function createSecretFile(path: string): SecretFile {
  const secrets: Record<string, string> = {};
  try {
    writeFileSync(path, secretManifest(secrets), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason = code === 'EEXIST' ? 'exists' : `cannot be written (${code})`;
    throw new UsageError(`${path} ${reason}. Name another file with --output.`);
  }
  return {
    keep(name, value) {
      secrets[name] = value;
      writeFileSync(path, secretManifest(secrets));
    },
    names: () => Object.keys(secrets),
    close() {
      const remains = Object.keys(secrets).length > 0;
      if (!remains) rmSync(path);
      return remains;
    },
  };
}

function secretManifest(secrets: Record<string, string>): string {
  const lines = Object.entries(secrets).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
  return ['apiVersion: v1', 'kind: Secret', 'metadata:', '  name: formgate-keycloak', 'stringData:', ...lines, ''].join(
    '\n',
  );
}
