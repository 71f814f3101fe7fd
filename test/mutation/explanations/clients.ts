// The mutants that survive in the clients of tenants, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const clients: readonly Explanation[] = [];
