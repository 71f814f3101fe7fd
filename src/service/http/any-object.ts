// The schema of any JSON object. zod's `record` would copy the object, which takes 0.1 s or more for a body of 1 MB
// with many members.
import { z } from 'zod';
import { isObject } from '../json-value.ts';

export const anyObject = z.custom<Record<string, unknown>>(isObject, 'must be an object').meta({ type: 'object' });
