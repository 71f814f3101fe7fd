// The platform server's route table: the routes of all its services, each with its guards.
import type { Route } from '../service/http/http-app.ts';
import { type AboutOptions, aboutRoutes } from '../service/openapi/about-routes.ts';
import { documentRoutes } from '../service/openapi/openapi.ts';
import { type ConfigurationRouteOptions, configurationRoutes } from './configuration/routes.ts';
import { type DirectoryRouteOptions, directoryRoutes } from './directory/routes.ts';
import { type EventRouteOptions, eventRoutes } from './events/routes.ts';
import { type SubscriptionRouteOptions, subscriptionRoutes } from './notifications/routes.ts';
import { type SubscriberRouteOptions, subscriberRoutes } from './notifications/subscriber-routes.ts';
import { type TenantRouteOptions, tenantRoutes } from './tenants/routes.ts';

export interface PlatformRoutesOptions {
  about: Pick<AboutOptions, 'checks' | 'clock'>;
  directory: DirectoryRouteOptions;
  tenants: TenantRouteOptions;
  configuration: ConfigurationRouteOptions;
  events: EventRouteOptions;
  notifications: SubscriptionRouteOptions & SubscriberRouteOptions;
}

const name = 'Platform server';
const description = 'Configuration, directory, tenants, notifications and events for clusters that have none.';
const api = ['/configuration/v2', '/directory/v2', '/api/tenant/v2', '/subscription/v1', '/event/v1'];

export function platformRoutes(options: PlatformRoutesOptions): Route[] {
  const routes = [
    ...aboutRoutes({ ...options.about, name, description, api }),
    ...directoryRoutes(options.directory),
    ...tenantRoutes(options.tenants),
    ...configurationRoutes(options.configuration),
    ...eventRoutes(options.events),
    ...subscriptionRoutes(options.notifications),
    ...subscriberRoutes(options.notifications),
  ];
  return [...routes, ...documentRoutes({ title: name, version: '1', description, routes })];
}
