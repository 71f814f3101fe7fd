// The command `keycloak-setup`. It creates the realms, clients and roles that Formgate needs in Keycloak, and writes
// the clients' secrets, the passwords and the registration tokens to a file.
import { existsSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError, parseConfig, secret } from '../../service/operations/config.ts';
import { UsageError } from '../usage-error.ts';
import { createAdminApi, SetupError } from './admin-api.ts';
import { help, parseSetupArguments, type SetupCommand } from './arguments.ts';
import { type SetupSecrets, setUpKeycloak } from './setup.ts';

const configSchema = z.object({ KEYCLOAK_PASSWORD: secret(1) });
const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const command = parseSetupArguments(process.argv.slice(2));
  if (!command) return print(help);
  const { KEYCLOAK_PASSWORD: password } = parseConfig(configSchema);
  if (existsSync(command.output)) throw new UsageError(`${command.output} exists. Name another file with --output.`);
  const api = createAdminApi({ ...command, password });
  let created = 0;
  const secrets = await setUpKeycloak(api, command, (line) => {
    created += 1;
    print(line);
  });
  if (created === 0) print('Nothing was missing.');
  writeFileSync(command.output, secretManifest(secrets), { mode: 0o600, flag: 'wx' });
  print(summary(command, secrets));
}

function summary({ output }: SetupCommand, secrets: SetupSecrets): string {
  return `Keycloak is ready. ${output} is a Secret with the keys ${Object.keys(secrets).join(', ')}.
Apply it with kubectl, name it in forms.account.secret.existingSecret and tokenHandler.account.secret.existingSecret,
and then delete the file.`;
}

function secretManifest(secrets: SetupSecrets): string {
  const lines = Object.entries(secrets).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
  return ['apiVersion: v1', 'kind: Secret', 'metadata:', '  name: formgate-keycloak', 'stringData:', ...lines, ''].join(
    '\n',
  );
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  if (!isUsage && !(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = isUsage ? 2 : 1;
}
