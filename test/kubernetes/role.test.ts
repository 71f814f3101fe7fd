// Tests with a real authorizer that the chart's Role allows the reconciler exactly what a sync needs.
import { AuthorizationV1Api, KubeConfig } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Lab, startLab } from './lab.ts';

let lab: Lab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab?.close());

interface Deed {
  verb: string;
  group: string;
  resource: string;
  subresource?: string;
  namespace?: string;
}

/** Asks the API server whether the reconciler's account may do `deed`. */
async function may(deed: Deed): Promise<boolean> {
  const config = new KubeConfig();
  config.loadFromFile(lab.kubeconfig);
  const { namespace = lab.namespace, ...resource } = deed;
  const { status } = await config.makeApiClient(AuthorizationV1Api).createSelfSubjectAccessReview({
    body: { spec: { resourceAttributes: { ...resource, namespace } } },
  });
  return status?.allowed ?? false;
}

const coreclients = { group: 'formgate.dev', resource: 'coreclients' };
const status = { ...coreclients, subresource: 'status' };
const events = { group: 'events.k8s.io', resource: 'events' };
const needed: Deed[] = [
  { verb: 'list', ...coreclients },
  { verb: 'patch', ...status },
  { verb: 'create', ...events },
];

describe('the reconciler’s Role', () => {
  it.each(needed)('allows $verb of $resource', async (deed) => {
    await expect.poll(() => may(deed)).toBe(true);
  });

  it.each(needed)('does not allow $verb of $resource in another namespace', async (deed) => {
    expect(await may({ ...deed, namespace: 'default' })).toBe(false);
    expect(await may({ ...deed, namespace: '' })).toBe(false);
  });

  it('allows no other verb on these resources, and no access to Secrets, ConfigMaps, Pods and Roles', async () => {
    const verbs = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
    const places = [
      coreclients,
      status,
      events,
      { group: '', resource: 'events' },
      { group: '', resource: 'secrets' },
      { group: '', resource: 'configmaps' },
      { group: '', resource: 'pods' },
      { group: 'rbac.authorization.k8s.io', resource: 'roles' },
      { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' },
    ];
    const allowed: Deed[] = [];
    for (const place of places)
      for (const verb of verbs) if (await may({ verb, ...place })) allowed.push({ verb, ...place });
    expect(allowed).toEqual(needed);
  });
});
