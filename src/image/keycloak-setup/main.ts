// The command `keycloak-setup`. It creates the realms, clients and roles that Formgate needs in Keycloak, and writes
// the clients' secrets, the passwords and the registration tokens to a file.
import { z } from 'zod';
import { UsageError } from '../../service/operations/command-line.ts';
import { ConfigError, parseConfig, secret } from '../../service/operations/config.ts';
import { endOnSignals } from '../../service/operations/end-on-signals.ts';
import { createAdminApi, SetupError } from './admin-api.ts';
import { help, parseSetupArguments } from './arguments.ts';
import { createSecretFile } from './secret-file.ts';
import { setUpKeycloak } from './setup.ts';

const configSchema = z.object({ KEYCLOAK_PASSWORD: secret(1) });
const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<void> {
  const command = parseSetupArguments(process.argv.slice(2));
  if (!command) return print(help);
  const { KEYCLOAK_PASSWORD: password } = parseConfig(configSchema);
  const file = createSecretFile(command.output);
  const api = createAdminApi({ ...command, password });
  let created = 0;
  const progress = (line: string) => {
    created += 1;
    print(line);
  };
  try {
    await setUpKeycloak(api, command, { progress, keep: file.keep });
  } catch (error) {
    if (file.close() && error instanceof SetupError)
      error.message += `\n${command.output} contains the secrets so far. Keep it, because a password cannot be read again.`;
    throw error;
  }
  if (created === 0) print('Nothing was missing.');
  print(`Keycloak is ready. ${command.output} is a Secret with the keys ${file.names().join(', ')}.
Apply it with kubectl, name it in forms.account.secret.existingSecret and tokenHandler.account.secret.existingSecret,
and then delete the file.`);
}

endOnSignals();
try {
  await main();
} catch (error) {
  const isUsage = error instanceof UsageError || error instanceof ConfigError;
  if (!isUsage && !(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = isUsage ? 2 : 1;
}
