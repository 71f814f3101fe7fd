// The image's one entry: its first argument names the process to run in this process. It knows no other way to run one.
import { findCommand, usage } from './commands.ts';

const [node = '', , name = '', ...rest] = process.argv;
const main = findCommand(name);
if (main === undefined) {
  process.stderr.write(`${usage(name)}\n`);
  process.exit(2);
}
// The process finds its own arguments where it would without us.
process.argv = [node, main, ...rest];
await import(main);
