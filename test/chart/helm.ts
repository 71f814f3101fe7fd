// Runs Helm on this project's chart. Uses the program that the variable HELM names. Without this variable, uses `helm`
// and `helm4` on the PATH or in the folder LAB_BIN.
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseAllDocuments } from 'yaml';

const root = join(import.meta.dirname, '../..');
export const chart = join(root, 'charts/formgate');
/** Release name and namespace of every rendering, so that results do not depend on the machine. */
const release = { name: 'formgate', namespace: 'forms' };
/** API versions that the chart looks for. */
const apiVersions = ['gateway.networking.k8s.io/v1', 'monitoring.coreos.com/v1', 'traefik.io/v1alpha1'];

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  [key: string]: unknown;
}

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Returns the installed Helm programs: version 3, 4 or both. Throws if there is none. */
export function helms(): string[] {
  const folders = [...(process.env.PATH ?? '').split(delimiter), process.env.LAB_BIN ?? '/opt/lab/bin'];
  const find = (name: string) => folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
  const found = process.env.HELM ? [process.env.HELM] : [find('helm'), find('helm4')];
  const programs = found.filter((file) => file !== undefined);
  if (programs.length === 0) throw new Error('There is no Helm on the PATH: set HELM, or put helm on the PATH.');
  return programs;
}

/**
 * Returns the paths of the values files in the chart's folder `ci`, and of the trial's values file
 * (docs/operations.md).
 */
export function valueSets(): string[] {
  const inFolder = readdirSync(join(chart, 'ci')).map((name) => join(chart, 'ci', name));
  return [...inFolder, join(chart, 'examples/trial.yaml')];
}

export function run(program: string, args: string[], input?: string): Promise<Finished> {
  return new Promise((done) => {
    const child = execFile(program, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      done({ code: error ? (typeof error.code === 'number' ? error.code : 1) : 0, stdout, stderr });
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

export interface Rendering {
  /** Files of values. Later files override earlier ones. */
  files?: string[];
  /** Values that override the files, keyed by path, such as `forms.replicas`. Helm gets them as JSON. */
  set?: Record<string, unknown>;
  namespace?: string;
  /** Name of the only template to render; by default all are rendered. */
  only?: string;
  /** Folder of the chart to render; by default this project's chart. */
  from?: string;
  /** Renders an upgrade instead of an installation. */
  isUpgrade?: boolean;
}

export function template(helm: string, options: Rendering): Promise<Finished> {
  const { files = [], set = {}, namespace = release.namespace, only, from = chart, isUpgrade } = options;
  return run(helm, [
    'template',
    release.name,
    from,
    `--namespace=${namespace}`,
    '--kube-version=1.34.0',
    ...apiVersions.map((version) => `--api-versions=${version}`),
    ...(isUpgrade ? ['--is-upgrade'] : []),
    ...(only === undefined ? [] : [`--show-only=templates/${only}.yaml`]),
    ...files.map((file) => `--values=${file}`),
    ...Object.entries(set).map(([path, value]) => `--set-json=${path}=${JSON.stringify(value)}`),
  ]);
}

/** Returns the rendered objects. Throws Helm's error message if Helm rejects the values. */
export async function render(helm: string, options: Rendering): Promise<KubeObject[]> {
  const { code, stdout, stderr } = await template(helm, options);
  if (code !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout, { uniqueKeys: true }).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    const object = document.toJS() as KubeObject | null;
    return object === null ? [] : [object];
  });
}

/** Returns the object of a kind and, if given, a name. Throws unless there is exactly one. */
export function pick<T = KubeObject>(objects: KubeObject[], kind: string, name?: string): T {
  const found = objects.filter((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  if (found.length !== 1) throw new Error(`There are ${found.length} ${kind} ${name ?? ''}`);
  return found[0] as T;
}

export interface Container {
  name: string;
  image: string;
  args?: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: Record<string, unknown>;
  ports?: { name: string; containerPort: number }[];
  lifecycle?: { preStop: { sleep: { seconds: number } } };
}

export interface PodSpec {
  serviceAccountName: string;
  automountServiceAccountToken: boolean;
  priorityClassName?: string;
  terminationGracePeriodSeconds?: number;
  securityContext: Record<string, unknown>;
  containers: Container[];
  volumes?: Volume[];
}

export interface Volume {
  name: string;
  configMap?: { name: string };
  secret?: { secretName: string };
  projected?: { sources: { secret: { name: string; items: { key: string; path: string }[] } }[] };
}

export interface PodTemplate {
  /** The object that creates the pods, such as `Deployment formgate-forms`. */
  of: string;
  component: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  spec: PodSpec;
}

/** Returns the templates of all pods that the objects would create. */
export function podTemplates(objects: KubeObject[]): PodTemplate[] {
  return objects.flatMap((object) => {
    const pod = podOf(object);
    if (pod === undefined) return [];
    const { labels = {}, annotations = {} } = pod.metadata;
    const component = labels['app.kubernetes.io/component'] ?? '';
    return [{ of: `${object.kind} ${object.metadata.name}`, component, labels, annotations, spec: pod.spec }];
  });
}

interface Pod {
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: PodSpec;
}

function podOf(object: KubeObject): Pod | undefined {
  if (object.kind === 'Pod') return object as unknown as Pod;
  const spec = object.spec as { template?: Pod; jobTemplate?: { spec: { template: Pod } } } | undefined;
  return spec?.template ?? spec?.jobTemplate?.spec.template;
}
