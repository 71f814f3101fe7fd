// Generates docs/configuration.md from the schemas that parse the environment, so that the page lists exactly the
// existing settings.
import { z } from 'zod';
import { settings as reconciler } from '../../reconciler/config.ts';
import { settings as forms } from '../../src/forms/config.ts';
import { settings as platformServer } from '../../src/platform-server/config.ts';
import { renamedSettings } from '../../src/service/operations/renamed-settings.ts';
import type { SettingsRule } from '../../src/service/operations/settings-rules.ts';
import { settings as tokenHandler } from '../../src/token-handler/config.ts';
import { chartParts, toCell } from './chart-values.ts';

/** A process and its settings. */
export interface ConfiguredProcess {
  title: string;
  /** Markdown text: what the process does, and how to start it. */
  about: string;
  schema: z.ZodObject;
  /** The name of the process in the chart's values. */
  part: string;
  /** Rules about combinations of settings. */
  rules?: readonly SettingsRule[];
}

/** Every process of the product. */
export const processes: ConfiguredProcess[] = [
  { title: 'Form service', part: 'forms', about: '`node src/forms/main.ts`', ...forms },
  { title: 'Token handler', part: 'tokenHandler', about: '`node src/token-handler/main.ts`', ...tokenHandler },
  {
    title: 'Platform server',
    part: 'platformServer',
    about: '`node src/platform-server/main.ts`. It replaces the platform’s services in clusters that have none.',
    ...platformServer,
  },
  {
    title: 'Reconciler',
    part: 'reconciler',
    about: '`node reconciler/main.ts` performs one run, then exits. `--help` lists its arguments.',
    ...reconciler,
  },
];

export interface Setting {
  name: string;
  /** The default in the syntax of the environment, `required`, or empty for an optional setting without a default. */
  default: string;
  /** Undefined if the setting has no description. */
  meaning: string | undefined;
}

export function settingsOf({ schema }: Pick<ConfiguredProcess, 'schema'>): Setting[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description } = field as z.ZodType;
    const choices = choicesOf(field);
    const meaning = choices && description ? `${description} (${choices.join(', ')})` : description;
    return { name, default: defaultOf(field), meaning };
  });
}

/** Returns the text of docs/configuration.md for the processes in `described`. */
export function configurationReference(described: readonly ConfiguredProcess[]): string {
  const tables = described.map((one) =>
    [`## ${one.title}`, one.about, tableOf(one), ...listOf(one.rules ?? [])].join('\n\n'),
  );
  return `${[introduction, ...tables, ending].join('\n\n')}\n`;
}

const introduction = `# Configuration

Every process reads its settings from environment variables when it starts. If a value is invalid, or two settings contradict
each other, the process exits before it listens. It logs all problems in one line, each with the name of the variable and
without the value; on a terminal it prints them as text. The process ignores unknown variables. It logs a
warning if the name of one is nearly that of a setting. [Checks before a rollout](operations.md#checks-before-a-rollout)
report the same without a start.

- Every variable \`NAME\` can be replaced by \`NAME_FILE\`, the path of a file that contains the value, such as a mounted
  secret. The process drops white space at the end of the file. Setting both variables is an error. With
  \`secrets.asFiles\`, the chart does so for all secrets.
- An empty variable counts as not set.
- Times are ISO 8601 durations in weeks, days, hours, minutes and seconds, such as \`P15D\` or \`PT1H30M\`.
- Commas separate the items of a list.
- Switches are \`true\` or \`false\`.
- The URLs of HTTP services are http or https URLs without credentials, query or fragment.
- "none" in the column "default" means that the setting is optional and has no default.
- The column "chart value" names the value of the Helm chart that determines the variable; \`….env\` is the map of further
  variables, and "none" means that the chart sets a fixed value. Some defaults of the chart differ from those of the
  processes ([values](../charts/formgate/README.md#values)).

The platform calls the identity provider "the access service"; hence the names of the variables that begin with
\`ACCESS_SERVICE_\`.

\`npm run docs\` writes this page from the schemas in \`src/*/config.ts\` and \`reconciler/config.ts\`. A test fails if they differ.`;

const ending = `## Renamed settings

If a version renames a setting, it accepts the old name with a warning in the log, also in \`env\` of the chart; the next
version ignores it. Setting both names is an error. Old names that this version accepts: ${
  Object.entries(renamedSettings)
    .map(([oldName, name]) => `\`${oldName}\` of \`${name}\``)
    .join(', ') || 'none'
}.

## Addresses of the platform's services

A process that calls the platform looks up the URLs of its services in the directory. The variable
\`DIR_<NAMESPACE>_<SERVICE>[_<API>]\` replaces the directory's entry for one service or one API. Its name is in capitals, with
underscores in place of hyphens:

\`\`\`sh
DIR_PLATFORM_CONFIGURATION_SERVICE_V2=http://configuration:8080/configuration/v2
DIR_PLATFORM_EVENT_SERVICE_V1=http://events:8080/event/v1
\`\`\`

## Cached responses

Every process caches the responses of the configuration, directory and tenant services. The age of a response decides how
the process uses it:

| age of the response | use |
| --- | --- |
| up to \`PLATFORM_CACHE_TTL\` | the process uses it without a request |
| up to 5 minutes | the process uses it, and requests a new one in the background |
| more than 5 minutes | the process waits for a new one |

A change in the configuration service can therefore take up to 5 minutes to reach every pod. A new definition, client, tenant or
directory entry works at once: if a cached response lacks what is looked up, the process requests a new one, at most once a
second for a document. While a service fails, the process uses the last response until it is 24 hours old, or
5 minutes old if it grants permission (roles, targets, open registers).

## npm start

| variable | default | meaning |
| --- | --- | --- |
| \`PORT\` | \`8080\` | The one port at which everything is reached |
| \`FORMGATE_DATA\` | \`.formgate\` in the project | Folder of all data, logs and generated secrets |
| \`URN_PREFIX\` | \`urn:example\` | As in the tables above, for all processes |
| \`LOG_LEVEL\` | \`info\` | As in the tables above, for all services |

\`npm start -- --fresh\` deletes all data first. It refuses a folder with files of these names but without Formgate's
\`secrets.json\`.`;

function listOf(rules: readonly SettingsRule[]): string[] {
  if (rules.length === 0) return [];
  const items = rules.map(({ names, problem }) => `- \`${names[0]}\` ${problem}`);
  return ['Rules between these settings:', items.join('\n')];
}

function tableOf(described: ConfiguredProcess): string {
  const rows = settingsOf(described).map(
    ({ name, default: value, meaning = '' }) =>
      `| \`${name}\` | ${chartValueOf(name, described.part)} | ${value} | ${toCell(meaning)} |`,
  );
  return ['| variable | chart value | default | meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}

/** Returns the chart's value that determines a variable. */
function chartValueOf(name: string, part: string): string {
  const { setByChart = {} } = chartParts[part] ?? {};
  if (!(name in setByChart)) return `\`${part}.env\``;
  return setByChart[name] === undefined ? 'none' : `\`${setByChart[name]}\``;
}

function defaultOf(field: unknown): string {
  if (field instanceof z.ZodDefault) return field.def.defaultValue === '' ? 'none' : `\`${field.def.defaultValue}\``;
  if (field instanceof z.ZodOptional) return 'none';
  if (field instanceof z.ZodPipe) return defaultOf(field.in);
  return '**required**';
}

function choicesOf(field: unknown): readonly unknown[] | undefined {
  if (field instanceof z.ZodDefault || field instanceof z.ZodOptional) return choicesOf(field.unwrap());
  return field instanceof z.ZodEnum ? field.options : undefined;
}
