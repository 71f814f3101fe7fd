// Reads the CustomResourceDefinition of CoreClients and the rules of the Role from the chart's templates. These
// templates are plain YAML, except for whole lines in Helm's template language.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { V1CustomResourceDefinition, V1PolicyRule } from '@kubernetes/client-node';
import { parse, parseAllDocuments } from 'yaml';

const chart = join(import.meta.dirname, '../../charts/formgate');

export function coreClientsDefinition(): V1CustomResourceDefinition {
  return plainYaml('templates/coreclients-crd.yaml') as V1CustomResourceDefinition;
}

export function reconcilerRules(): V1PolicyRule[] {
  return plainYaml('templates/_reconciler-rules.tpl') as V1PolicyRule[];
}

/** Returns the CoreClients that the chart gives as examples. */
export function coreClientExamples(): { metadata: { name: string }; spec: Record<string, unknown> }[] {
  const text = readFileSync(join(chart, 'examples/core-clients.yaml'), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS());
}

function plainYaml(path: string): unknown {
  const text = readFileSync(join(chart, path), 'utf8').replace(/\{\{-?\s*\/\*[\s\S]*?\*\/\s*-?\}\}/g, '');
  return parse(text.replace(/^\s*\{\{.*\}\}\s*$/gm, ''));
}
