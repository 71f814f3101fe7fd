// Documents the request headers of an operation: those of its route, and those that the guards of the route read.
import { z } from 'zod';
import type { Route } from '../http/http-app.ts';
import type { RequestHeader } from '../http/request-header.ts';

/** Returns the schema of the request headers. Undefined if the operation has none. The headers of the route win. */
export function headerParameters({ guards, headers }: Route, method: string): z.ZodObject | undefined {
  const ofGuards = method === 'get' ? [] : guards.flatMap((guard) => Object.entries(guard.headers ?? {}));
  const all = [...ofGuards, ...Object.entries(headers ?? {})];
  if (all.length === 0) return undefined;
  return z.object(Object.fromEntries(all.map(([name, header]) => [name, headerSchema(header)])));
}

function headerSchema(header: string | RequestHeader): z.ZodType {
  const { description, isRequired, example }: RequestHeader =
    typeof header === 'string' ? { description: header } : header;
  const schema = isRequired ? z.string() : z.string().optional();
  return schema.meta({ description, ...(example !== undefined && { examples: [example] }) });
}
