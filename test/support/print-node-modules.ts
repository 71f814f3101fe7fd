// Loaded into a process with `--import`. Prints to standard error the names of Node's own modules that the process has
// loaded when it ends. Uses an undocumented list, because nothing else names them.
process.once('exit', () => {
  const { moduleLoadList } = process as unknown as { moduleLoadList: string[] };
  process.stderr.write(moduleLoadList.map((name) => `${name}\n`).join(''));
});
