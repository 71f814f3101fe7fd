// Loads a part of the console that is a separate file.
import { ApiProblem, updatedStatus } from '../api/problem.ts';

/**
 * Loads a part. Throws ApiProblem if this fails: with `updatedStatus` if the server responds, because it then has the
 * files of another version of the console.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch {
    const response = await fetch('/console', { cache: 'no-store' }).catch(() => undefined);
    throw new ApiProblem(response?.ok ? updatedStatus : 0);
  }
}
