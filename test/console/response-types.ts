// Ties the console's types of responses to the schemas of the APIs. The module has only types: `npm run check` fails if
// the console expects something else than an API sends.
import type { z } from 'zod';
import type { definitionList } from '../../src/forms/definitions/schema.ts';
import type { form, formList } from '../../src/forms/forms/responses.ts';
import type { operationsResponse } from '../../src/forms/operations/schema.ts';
import type { quarantineItem } from '../../src/forms/quarantine/schema.ts';
import type * as registers from '../../src/forms/registers/schema.ts';
import type { clientResponse, leftoversResponse } from '../../src/token-handler/clients/schema.ts';
import type { Client, Leftover } from '../../web/console/clients/client.ts';
import type { DefinitionList, Form, FormPage } from '../../web/console/forms/form.ts';
import type { Operations, QuarantinedItem } from '../../web/console/operations/operations.ts';
import type { Comparison, FoundReferences, Register, Revision } from '../../web/console/registers/register.ts';

/** JSON has no undefined: an optional member is absent. */
type Json<T> = T extends readonly (infer Item)[]
  ? Json<Item>[]
  : T extends object
    ? { [Name in keyof T]: Json<Exclude<T[Name], undefined>> }
    : T;

/** The response of an API, if it is what the console expects. */
type Tied<Expected, Sent extends Expected> = Sent;

type Sent<Schema extends z.ZodType> = Json<z.output<Schema>>;

export type Ties = [
  Tied<Form, Sent<typeof form>>,
  Tied<FormPage, Sent<typeof formList>>,
  Tied<DefinitionList, Sent<typeof definitionList>>,
  Tied<{ results: Register[] }, Sent<typeof registers.listResponse>>,
  Tied<Register, Sent<typeof registers.registerResponse>>,
  Tied<{ results: Revision[] }, Sent<typeof registers.revisionsResponse>>,
  // The schema of a comparison leaves the entries open.
  Tied<Omit<Comparison, 'changes'>, Sent<typeof registers.comparisonResponse>>,
  Tied<FoundReferences, Sent<typeof registers.referencesResponse>>,
  Tied<Operations, Sent<typeof operationsResponse>>,
  Tied<QuarantinedItem, Sent<typeof quarantineItem>>,
  Tied<Client, Sent<typeof clientResponse>>,
  Tied<Leftover[], Sent<typeof leftoversResponse>>,
];
