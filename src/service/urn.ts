// Builds the platform's URNs from the configured prefix. The directory resolves URNs to addresses.

export interface Urns {
  readonly prefix: string;
  /** `urn:example:platform:<name>`: identifies a platform service and is its client id. */
  service(name: string): string;
  /** `<service urn>:<role>`: a role of another service, as it appears in a caller's list of roles. */
  role(service: string, role: string): string;
  /** URN of a tenant: `…:tenant-service:v2:/tenants/<id>`. */
  tenant(id: string): string;
  /** URN of a form: `…:form-service:v1:/forms/<id>`. */
  form(id: string): string;
  /** URN of a subscriber: `…:notification-service:v1:/subscribers/<id>`. */
  subscriber(id: string): string;
  /** URN of a configuration: `…:configuration-service:v2:/configuration/<namespace>/<name>`. */
  configuration(namespace: string, name: string): string;
  /**
   * `…:configuration:v2:/configuration/data-register/<name>`: the URN that forms use to name a register. The name is
   * not URL-encoded.
   */
  register(name: string): string;
}

export function createUrns(prefix: string): Urns {
  const service = (name: string) => `${prefix}:platform:${name}`;
  return {
    prefix,
    service,
    role: (name, role) => `${service(name)}:${role}`,
    tenant: (id) => `${service('tenant-service')}:v2:/tenants/${id}`,
    form: (id) => `${service('form-service')}:v1:/forms/${id}`,
    subscriber: (id) => `${service('notification-service')}:v1:/subscribers/${id}`,
    configuration: (namespace, name) => `${service('configuration-service')}:v2:/configuration/${namespace}/${name}`,
    register: (name) => `${service('configuration')}:v2:/configuration/data-register/${name}`,
  };
}
