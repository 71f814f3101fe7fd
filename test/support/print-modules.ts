// Loaded into a process with `--import`. Prints the URL of each module that the process loads.
import { registerHooks } from 'node:module';

registerHooks({
  load(url, context, next) {
    process.stdout.write(`${url}\n`);
    return next(url, context);
  },
});
