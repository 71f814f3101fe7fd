// Defines CoreClient resources in the format of the API server, and parses lists of them. An invalid resource does not
// make the parser or the sync fail. The resource later gets a condition that reports the problem.
import { z } from 'zod';

export const apiGroup = 'formgate.dev';
export const apiVersion = 'v1alpha1';
export const kind = 'CoreClient';
export const plural = 'coreclients';

export const conditionTypes = ['Accepted', 'Synced', 'TargetsResolved', 'Shadows', 'Ready'] as const;

/** A condition in the format of `metav1.Condition`. */
export interface Condition {
  type: (typeof conditionTypes)[number];
  status: 'True' | 'False' | 'Unknown';
  observedGeneration: number;
  /** Time in ISO 8601, with whole seconds. */
  lastTransitionTime: string;
  reason: string;
  message: string;
}

export interface CoreClientStatus {
  observedGeneration: number;
  clientId?: string;
  /** The revision of the core configuration that resulted from the last write of the client. */
  revision?: number;
  /** SHA-256 hash of the last written entry, in hexadecimal. */
  syncedHash?: string;
  /** The ids of tenants that have their own client with this id; at most `mostShadowedTenants`, sorted. */
  shadowedTenants?: string[];
  conditions: Condition[];
}

export interface CoreClientResource {
  name: string;
  uid: string;
  generation: number;
  /** Creation time of the resource (ISO 8601). */
  created: string;
  resourceVersion: string;
  spec: unknown;
  /** The current status in the cluster. It may be incomplete. */
  status: Partial<CoreClientStatus>;
}

const optional = <T extends z.ZodType>(type: T) => type.optional().catch(undefined);

const condition = z.object({
  type: z.enum(conditionTypes),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.number().catch(-1),
  lastTransitionTime: z.string(),
  reason: z.string(),
  message: z.string().catch(''),
});

const status = z.looseObject({
  observedGeneration: optional(z.number()),
  clientId: optional(z.string()),
  revision: optional(z.number()),
  syncedHash: optional(z.string()),
  shadowedTenants: optional(z.array(z.string())),
  conditions: z
    .array(z.unknown())
    .catch([])
    .transform((items) => items.flatMap((item) => condition.safeParse(item).data ?? [])),
});

const resource = z
  .object({
    metadata: z.object({
      name: z.string(),
      uid: z.string(),
      generation: z.number().catch(0),
      creationTimestamp: z.string().catch(''),
      resourceVersion: z.string().catch(''),
      deletionTimestamp: z.string().optional(),
    }),
    spec: z.unknown().optional(),
    status: status.catch({ conditions: [] }),
  })
  .transform(({ metadata, spec, status: current }) => ({
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    resource: {
      name: metadata.name,
      uid: metadata.uid,
      generation: metadata.generation,
      created: metadata.creationTimestamp,
      resourceVersion: metadata.resourceVersion,
      spec,
      status: current,
    } as CoreClientResource,
  }));

const page = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(resource),
});

/**
 * Parses one page of a list. Omits resources that are being deleted. Returns undefined if the response is not a list.
 */
export function parsePage(
  response: unknown,
): { resources: CoreClientResource[]; next: string | undefined } | undefined {
  const parsed = page.safeParse(response);
  if (!parsed.success) return undefined;
  const present = parsed.data.items.filter(({ isBeingDeleted }) => !isBeingDeleted);
  return { resources: present.map((item) => item.resource), next: parsed.data.metadata.continue || undefined };
}

/** Returns a condition of a resource's status. */
export function conditionOf(status: Partial<CoreClientStatus>, type: Condition['type']): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}
