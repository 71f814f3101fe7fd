// Finds the settings of all processes, for tests whose cases are generated from them.
import type { z } from 'zod';
import { settings as reconciler } from '../../reconciler/config.ts';
import { settings as forms } from '../../src/forms/config.ts';
import { settings as platformServer } from '../../src/platform-server/config.ts';
import type { ProcessSettings } from '../../src/service/operations/config.ts';
import { settings as tokenHandler } from '../../src/token-handler/config.ts';

export const processes: Record<string, ProcessSettings> = {
  ...{ forms, 'token-handler': tokenHandler, 'platform-server': platformServer, reconciler },
};

/** Returns what is wrong with the text of a setting, or undefined. */
export const problemOf = (field: unknown, text: string) =>
  (field as z.ZodType).safeParse(text).error?.issues[0]?.message;

/** Returns the settings whose problem with `text` contains `expected`. Kinds of settings differ in their problems. */
export const settingsOfKind = (text: string, expected: string) =>
  Object.entries(processes).flatMap(([process, { schema }]) =>
    Object.entries(schema.shape)
      .filter(([, field]) => problemOf(field, text)?.includes(expected))
      .map(([name, field]) => ({ process, name, field })),
  );
