// The Kubernetes objects of the tests' identity provider and mailbox in a namespace, with their Ingress.

export interface PartsOptions {
  image: string;
  /** Address of the identity provider; ends in /auth. */
  publicUrl: string;
  serviceSecret: string;
  host: string;
}

const name = 'test-parts';
const labels = { app: name };

export function partsManifests(options: PartsOptions): object[] {
  return [deployment(options), service, ingress(options.host)];
}

function deployment({ image, publicUrl, serviceSecret }: PartsOptions): object {
  const container = {
    name: 'parts',
    image,
    imagePullPolicy: 'IfNotPresent',
    env: [
      { name: 'PUBLIC_URL', value: publicUrl },
      { name: 'SERVICE_SECRET', value: serviceSecret },
    ],
    ports: [{ containerPort: 8080 }, { containerPort: 2525 }],
    readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { automountServiceAccountToken: false, securityContext, containers: [container] },
      },
    },
  };
}

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name },
  spec: {
    selector: labels,
    ports: [
      { name: 'http', port: 8080 },
      { name: 'smtp', port: 2525 },
    ],
  },
};

function ingress(host: string): object {
  const backend = { service: { name, port: { name: 'http' } } };
  const paths = [
    { path: '/auth', pathType: 'Prefix', backend },
    { path: '/mailbox', pathType: 'Prefix', backend },
    { path: '/', pathType: 'Exact', backend },
  ];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name },
    spec: { ingressClassName: process.env.INGRESS_CLASS || 'traefik', rules: [{ host, http: { paths } }] },
  };
}
