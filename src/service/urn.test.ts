// Tests that every URN begins with the configured prefix.
import { describe, expect, it } from 'vitest';
import { createUrns } from './urn.ts';

describe.each(['urn:example', 'urn:ads'])('with the prefix %s', (prefix) => {
  const urns = createUrns(prefix);

  it('services, roles, tenants, forms, subscribers and configurations are named as the platform names them', () => {
    expect([
      urns.service('form-service'),
      urns.role('configuration-service', 'configuration-admin'),
      urns.tenant('65f0'),
      urns.form('5d0c'),
      urns.subscriber('66aa'),
      urns.configuration('data-register', 'cities'),
    ]).toEqual([
      `${prefix}:platform:form-service`,
      `${prefix}:platform:configuration-service:configuration-admin`,
      `${prefix}:platform:tenant-service:v2:/tenants/65f0`,
      `${prefix}:platform:form-service:v1:/forms/5d0c`,
      `${prefix}:platform:notification-service:v1:/subscribers/66aa`,
      `${prefix}:platform:configuration-service:v2:/configuration/data-register/cities`,
    ]);
  });

  it('a register is named by configuration v2 and its name, which is not encoded', () => {
    expect(urns.register('Cities of the North')).toBe(
      `${prefix}:platform:configuration:v2:/configuration/data-register/Cities of the North`,
    );
  });
});
