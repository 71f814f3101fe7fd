// The worker thread that validates answers. It answers each message; whoever started it ends it when an answer takes too
// long. Started by schema-validator.ts only.
import { parentPort } from 'node:worker_threads';
import type { ValidateFunction } from 'ajv';
import { LRUCache } from 'lru-cache';
import { parseJson } from '../../service/json-parser.ts';
import { applySchema, compileSchema } from './json-schema.ts';
import type { WorkerAnswer, WorkerQuestion } from './schema-validator.ts';

const compiled = new LRUCache<string, ValidateFunction | Error>({ max: 100 });

function answer({ key, schema, data }: WorkerQuestion): WorkerAnswer {
  const validate = compiled.get(key) ?? compile(key, schema);
  if (validate instanceof Error) return { unusable: validate.message };
  return { errors: applySchema(validate, parseJson(data)) };
}

function compile(key: string, schema: string): ValidateFunction | Error {
  let result: ValidateFunction | Error;
  try {
    result = compileSchema(parseJson(schema));
  } catch (error) {
    result = error instanceof Error ? error : new Error(String(error));
  }
  compiled.set(key, result);
  return result;
}

parentPort?.on('message', (question: WorkerQuestion) => {
  let reply: WorkerAnswer;
  try {
    reply = answer(question);
  } catch (error) {
    // A schema that refers to itself without end, or data nested beyond what it can walk.
    reply = { unusable: error instanceof Error ? error.message : String(error) };
  }
  parentPort?.postMessage(reply);
});

parentPort?.postMessage('ready');
