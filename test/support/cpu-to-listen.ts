// Loaded into a process with `--import`. Prints the CPU time of the main thread to standard error, in nanoseconds, when
// the process listens with its second HTTP server or exits without listening. On a busy machine, CPU time varies much
// less than elapsed time.
import { readFileSync } from 'node:fs';

type Listen = (...values: unknown[]) => unknown;

// proc(5): the first field of schedstat is the time on the CPU.
const print = () => process.stderr.write(`cpu ${readFileSync('/proc/self/schedstat', 'utf8').split(' ')[0]}\n`);
const { Server } = process.getBuiltinModule('node:http');
const listen = Server.prototype.listen as Listen;
let listening = 0;
Server.prototype.listen = function (this: InstanceType<typeof Server>, ...values: unknown[]) {
  this.once('listening', () => {
    listening += 1;
    if (listening === 2) print();
  });
  return listen.apply(this, values);
} as typeof Server.prototype.listen;
process.once('exit', () => {
  if (listening === 0) print();
});
