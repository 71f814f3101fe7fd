// Ends the running reads of a connection when the connection is found to be dead. Otherwise, a request whose read was
// sent just before would wait until the deadline of the read.
export function createRunningReads() {
  const running = new Set<(error: unknown) => void>();
  return {
    /** Runs a read. Rejects like `read`, or with the error of `fail`. */
    async run<T>(read: () => Promise<T>): Promise<T> {
      const { promise, reject } = Promise.withResolvers<never>();
      running.add(reject);
      try {
        return await Promise.race([read(), promise]);
      } finally {
        running.delete(reject);
      }
    },
    /** Rejects all running reads. */
    fail(error: unknown): void {
      for (const reject of running) reject(error);
    },
  };
}
