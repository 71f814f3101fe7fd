// Checks the import and code rules and lists every finding. Exits with 1 if there are any.
import { findCodeProblems } from './code-rules.ts';
import { checkImports, findBlindSpots } from './import-rules.ts';

const root = process.cwd();
const report = await checkImports(root);
const findings = [
  ...report.findings.map(
    ({ rule, from, specifier, comment }) => `${from}: imports ${specifier} (${rule})\n    ${comment}`,
  ),
  ...findBlindSpots(root, report),
  ...findCodeProblems(root).map(
    ({ rule, path, line, detail }) => `${path}${line === undefined ? '' : `:${line}`}: ${detail} (${rule})`,
  ),
];
for (const finding of findings) console.error(finding);
console.log(`Import and code rules: ${report.modules.size} files, ${findings.length} findings.`);
process.exitCode = findings.length === 0 ? 0 : 1;
