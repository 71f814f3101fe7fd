// Loaded into a process with `--import`. When the process ends, prints the names of all loaded Node modules to standard
// error. Uses an undocumented list, because Node has no documented one.
process.once('exit', () => {
  const { moduleLoadList } = process as unknown as { moduleLoadList: string[] };
  process.stderr.write(moduleLoadList.map((name) => `${name}\n`).join(''));
});
