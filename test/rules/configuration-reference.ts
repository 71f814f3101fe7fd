// Writes docs/configuration.md from the schemas that parse the environment: a setting cannot be missing there, nor stay
// when it goes. It knows no values but defaults.
import { z } from 'zod';
import { configSchema as reconcilerSchema } from '../../reconciler/config.ts';
import { configSchema as formsSchema } from '../../src/forms/config.ts';
import { configSchema as platformServerSchema } from '../../src/platform-server/config.ts';
import { configSchema as tokenHandlerSchema } from '../../src/token-handler/config.ts';

/** A process and what it reads of its environment. */
export interface ConfiguredProcess {
  title: string;
  /** What the process is and how it is started. */
  about: string;
  schema: z.ZodObject;
}

/** Every process of the product. */
export const processes: ConfiguredProcess[] = [
  { title: 'Form service', about: '`node src/forms/main.ts`', schema: formsSchema },
  { title: 'Token handler', about: '`node src/token-handler/main.ts`', schema: tokenHandlerSchema },
  {
    title: 'Platform server',
    about: '`node src/platform-server/main.ts`, for clusters that have none of the platform’s services.',
    schema: platformServerSchema,
  },
  {
    title: 'Reconciler',
    about: '`node reconciler/main.ts`, one pass over drafts and core clients; `--help` names its arguments.',
    schema: reconcilerSchema,
  },
];

export interface Setting {
  name: string;
  /** As it would be written, `required`, or nothing where it may be left out. */
  default: string;
  /** Undefined for a setting that nobody has described. */
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

/** The page for these processes. */
export function configurationReference(described: readonly ConfiguredProcess[]): string {
  const tables = described.map((one) => [`## ${one.title}`, one.about, tableOf(settingsOf(one))].join('\n\n'));
  return `${[introduction, ...tables, ending].join('\n\n')}\n`;
}

const introduction = `# Configuration

Every process reads its environment once, when it starts. If a value is invalid, or two settings contradict each other, it
stops before it listens and names every problem at once, one on each line, never a value. It ignores variables that it does
not know, and logs a warning where the name of one is nearly that of a setting.

- \`NAME_FILE\` may be given in place of any \`NAME\`: the path of a file that holds the value, such as a mounted secret.
  Giving both is a problem. An empty variable counts as not given.
- Times are ISO 8601 durations in weeks, days, hours, minutes and seconds, such as \`P15D\` or \`PT1H30M\`.
- Lists are separated by commas. Switches are \`true\` or \`false\`. Addresses are http or https, without credentials,
  query or fragment.

This page is written by \`npm run docs\` from the schemas in \`src/*/config.ts\` and \`reconciler/config.ts\`; a test fails where it differs.`;

const ending = `## Addresses of the platform's services

A process that calls the platform finds its services in the directory. \`DIR_<NAMESPACE>_<SERVICE>[_<API>]\` gives the
address of one instead, in capitals with underscores, and wins over the directory's entry:

\`\`\`sh
DIR_PLATFORM_CONFIGURATION_SERVICE_V2=http://configuration:8080/configuration/v2
DIR_PLATFORM_EVENT_SERVICE_V1=http://events:8080/event/v1
\`\`\`

## npm start

\`PORT\` (8080) is the one port that everything is reached at, \`FORMGATE_DATA\` (\`.formgate\` in the project) the folder
where everything is kept, \`URN_PREFIX\` and \`LOG_LEVEL\` are those of the processes. \`--fresh\` starts over.`;

function tableOf(settings: Setting[]): string {
  const rows = settings.map(
    ({ name, default: value, meaning = '' }) => `| \`${name}\` | ${value} | ${toCell(meaning)} |`,
  );
  return ['| variable | default | meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

function toCell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
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
