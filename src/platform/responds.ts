// Whether a platform service answers at all, for `GET /health` of the services that depend on it. It reads no answer.

/** `url`: of the service, as the directory has it. Throws for one that cannot be reached in 5 s. */
export async function responds(url: string): Promise<boolean> {
  const response = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(5_000) });
  await response.body?.cancel();
  // Any answer but a failure will do: behind an ingress, the address of a service's health is not known.
  return response.status < 500;
}
