// Finds a condition in a resource's status.
import type { Condition, CoreClientStatus } from './resource.ts';

export function conditionOf(status: Partial<CoreClientStatus>, type: Condition['type']): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}
