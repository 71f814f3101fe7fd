// Loaded into a process with `--import`. When the process ends, prints the names of the Node modules that it has loaded
// to standard error. Uses an undocumented list, because Node has no documented one.
process.once('exit', () => {
  const { moduleLoadList } = process as unknown as { moduleLoadList: string[] };
  process.stderr.write(moduleLoadList.map((name) => `${name}\n`).join(''));
});
