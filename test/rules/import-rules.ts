// The import rules in the format of dependency-cruiser, and a function that checks a tree of files. code-rules.ts
// checks the contents of files.
import { cruise, type IFlattenedRuleSet, type IForbiddenRuleType } from 'dependency-cruiser';
import { codeEndings, listFiles, type SourceFile, sourceFolders } from './source-files.ts';

/** An import that breaks a rule. Paths are relative to the checked tree. */
export interface ImportFinding {
  rule: string;
  from: string;
  /** The specifier as written in the file. */
  specifier: string;
  comment: string;
}

export interface ImportReport {
  findings: ImportFinding[];
  /** Every module that the checker parsed, with the import specifiers that it found. */
  modules: Map<string, string[]>;
}

const tests = String.raw`^test/|\.test\.ts$`;
/** The folders of src. */
export const importRuleModules = ['service', 'platform', 'forms', 'token-handler', 'platform-server', 'image'];
const modules = `(?:${importRuleModules.join('|')})`;
const nounFolder = '^src/(?:forms|token-handler|platform-server)/[^/]+/';
// Matches forms/form.ts, registries/registry.ts, addresses/address.ts and sign-in/sign-in.ts.
const noun = String.raw`^src/(?:forms|token-handler|platform-server)/(?:([^/]+)s/\1|([^/]+)es/\2|([^/]+)ies/\3y|([^/]*[^/s])/\4)\.ts$`;
// For example, with the kind `store`, matches store.ts, form-store.ts and store-rows.ts.
const named = (kind: string) => String.raw`${nounFolder}[^/]*\b${kind}\b[^/]*\.ts$`;

const forbidden: IForbiddenRuleType[] = [
  {
    name: 'service-imports-no-other-module',
    comment: 'src/service is shared by all processes, and depends on none of them.',
    from: { path: '^src/service/', pathNot: tests },
    to: { path: [`^src/(?!service/)${modules}/`, '^reconciler/'] },
  },
  {
    name: 'platform-imports-only-service',
    comment: 'src/platform is shared by all processes, and depends only on src/service.',
    from: { path: '^src/platform/', pathNot: tests },
    to: { path: [`^src/(?!platform/|service/)${modules}/`, '^reconciler/'] },
  },
  {
    name: 'processes-import-no-other-process',
    comment:
      'forms, token-handler and platform-server call each other over HTTP only; they share src/service and src/platform.',
    from: { path: '^src/(forms|token-handler|platform-server)/', pathNot: tests },
    to: { path: [`^src/(?!$1/|service/|platform/)${modules}/`, '^reconciler/'] },
  },
  {
    name: 'reconciler-imports-only-expiry-of-forms',
    comment: 'Of src, the reconciler uses only service, platform, forms/expiry and forms/quarantine.',
    from: { path: '^reconciler/', pathNot: tests },
    to: {
      path: `^src/${modules}/`,
      pathNot: ['^src/(?:service|platform)/', '^src/forms/(?:expiry|quarantine)/'],
    },
  },
  {
    name: 'image-imports-only-settings-of-the-reconciler',
    comment: 'The command `config` checks settings of the reconciler, but runs no part of it.',
    from: { path: '^src/image/', pathNot: tests },
    to: { path: '^reconciler/', pathNot: String.raw`^reconciler/config\.ts$` },
  },
  {
    name: 'nothing-imports-dev',
    comment: 'dev/ holds npm start and its development stand-ins. Only tests may use them.',
    from: { path: '.', pathNot: `^dev/|${tests}` },
    to: { path: '^dev/' },
  },
  {
    name: 'pages-talk-by-http-only',
    comment: 'The pages run in a browser and share no code with the processes.',
    from: { path: '^web/', pathNot: tests },
    to: { path: ['^src/', '^reconciler/', '^dev/'] },
  },
  {
    name: 'only-npm-start-builds-pages',
    comment: 'The processes have no build step: they serve files of web/dist.',
    from: { path: ['^src/', '^reconciler/'], pathNot: tests },
    to: { path: '^web/' },
  },
  {
    name: 'only-tests-import-tests',
    comment: 'Code that runs in production or in npm start must not need test/ or a *.test.ts file.',
    from: { path: '.', pathNot: tests },
    to: { path: tests },
  },
  {
    name: 'nothing-imports-a-main',
    comment: 'A main.ts starts a process when it is loaded: run it, do not import it.',
    from: { path: '.' },
    to: { path: String.raw`^(?:src/[^/]+/|reconciler/|dev/)main\.ts$` },
  },
  {
    name: 'only-the-app-imports-routes',
    comment: 'Only the app of the module, or other routes of the same folder, import the routes of a noun.',
    from: { path: nounFolder, pathNot: [tests, named('routes')] },
    to: { path: named('routes') },
  },
  {
    name: 'routes-stay-in-their-folder',
    comment: 'The routes of a noun do not import the routes of another noun.',
    from: { path: '^src/[^/]+/([^/]+)/', pathNot: [tests, `${nounFolder}(?!.*routes)`] },
    to: { path: named('routes'), pathNot: '^src/[^/]+/$1/' },
  },
  {
    name: 'schema-and-policy-import-no-store',
    comment: 'A schema describes requests, and a policy decides who may do what. Neither reads data.',
    from: { path: [named('schema'), named('policy')], pathNot: tests },
    to: { path: named('store') },
  },
  {
    name: 'noun-imports-nothing-above-it',
    comment: 'Schema, policy and store may import the noun’s own file, but not vice versa.',
    from: { path: noun },
    to: { path: [named('schema'), named('policy'), named('store')] },
  },
  {
    name: 'noun-is-pure',
    comment: 'The noun’s own file is pure: no HTTP, no database, no environment, no clock, no input or output.',
    from: { path: noun },
    to: {
      path: [
        '(?:^|/)node_modules/(?:@types/)?(?:express|express-session|pg|redis|@redis|ioredis|connect-redis|undici|nodemailer|graphile-worker|prom-client|pino|http-proxy-middleware)/',
        '^(?:node:)?(?:process|fs|http|https|http2|net|tls|dgram|dns|child_process|cluster|worker_threads|timers|os|perf_hooks)(?:/|$)',
        String.raw`^src/service/(?:clock\.ts$|postgres/|redis/|operations/|openapi/|workers/|http/http-app\.ts$|.*-guards\.ts$)`,
        '^src/platform/',
      ],
    },
  },
  {
    name: 'store-imports-no-other-nouns-store',
    comment: 'A store does not import another noun’s store. Combine them in routes, in a statement, or by an argument.',
    from: { path: String.raw`^src/([^/]+/[^/]+)/[^/]*\bstore\b[^/]*\.ts$` },
    to: { path: named('store'), pathNot: '^src/$1/' },
  },
  {
    name: 'no-cycles',
    comment: 'Files that import each other, types included, cannot be read separately.',
    from: { path: '.' },
    to: { circular: true },
  },
  {
    name: 'production-imports-only-dependencies',
    comment: 'The image contains only dependencies: code in it must not need a devDependency or an undeclared package.',
    from: { path: [`^src/${modules}/`, '^reconciler/'], pathNot: tests },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'npm-bundled'], dependencyTypesNot: ['type-only'] },
  },
  {
    name: 'imports-resolve',
    comment: 'The import names a file or package that does not exist.',
    from: { path: '.' },
    // A sample imports `token-handler-client.js`, but does not contain this file. Users of the sample copy the file
    // into its folder.
    to: { couldNotResolve: true, pathNot: String.raw`^\./token-handler-client\.js$` },
  },
];

const ruleSet: IFlattenedRuleSet = { forbidden: forbidden.map((rule) => ({ ...rule, severity: 'error' })) };

/** The names of all import rules; each has a fixture of the same name. */
export const importRuleNames: string[] = forbidden.map((rule) => rule.name ?? '');

/**
 * Checks the imports of all code of a tree.
 *
 * dependency-cruiser cannot use TypeScript 7, which has no parser API: it would skip all TypeScript files and report
 * nothing. Therefore the parser is swc. The report lists the modules that swc parsed, so that the caller can compare
 * them with the files on disk.
 */
export async function checkImports(root: string): Promise<ImportReport> {
  const files = listFiles(root, sourceFolders, codeEndings);
  if (files.length === 0) throw new Error(`There is no code under ${root}`);
  const { output } = await cruise(
    files.map((file: SourceFile) => file.path),
    {
      baseDir: root,
      ruleSet,
      validate: true,
      parser: 'swc',
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
      exclude: { path: '^test/fixtures/' },
      enhancedResolveOptions: {
        exportsFields: ['exports'],
        conditionNames: ['import', 'node', 'default', 'types', 'require'],
        extensions: [...codeEndings, '.json'],
      },
    },
  );
  if (typeof output === 'string') throw new Error('dependency-cruiser returned text instead of its result');
  const findings = output.summary.violations.map(({ rule, from, to, unresolvedTo }) => ({
    rule: rule.name,
    from,
    specifier: unresolvedTo ?? to,
    comment: forbidden.find(({ name }) => name === rule.name)?.comment ?? '',
  }));
  const modules = new Map<string, string[]>();
  for (const { source, dependencies } of output.modules) {
    if (files.some((file) => file.path === source))
      modules.set(
        source,
        dependencies.map(({ module }) => module.replace('node:', '')),
      );
  }
  return { findings, modules };
}

/**
 * Returns the files and imports that the checker missed. The checker cannot see an import in the type expression
 * `import(…).Y`; code must use `import type` instead.
 */
export function findBlindSpots(root: string, { modules }: ImportReport): string[] {
  return listFiles(root, sourceFolders, codeEndings).flatMap(({ path, text }) => {
    const seen = modules.get(path);
    if (seen === undefined) return [`${path}: not seen by the import checker`];
    const statements = text.matchAll(/^(?:import|export)\b[^'"`;]*?from '([^']+)'/gm);
    // Ignore comments, because a comment in a JavaScript file may name a type by `import(…)`.
    const expressions = text.matchAll(/^(?!\s*(?:\/\/|\/?\*)).*\bimport\('([^']+)'\)/gm);
    return [...statements, ...expressions].flatMap(([, specifier = '']) =>
      seen.includes(specifier.replace('node:', ''))
        ? []
        : [`${path}: the import of ${specifier} was not seen by the import checker`],
    );
  });
}
