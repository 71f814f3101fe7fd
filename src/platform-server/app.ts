// The platform server's route table: the routes of all its services, each with its guards.
import type { Route } from '../service/http/http-app.ts';
import { documentRoutes } from '../service/openapi/openapi.ts';
import { type ConfigurationRouteOptions, configurationRoutes } from './configuration/routes.ts';
import { type DirectoryRouteOptions, directoryRoutes } from './directory/routes.ts';
import { type EventRouteOptions, eventRoutes } from './events/routes.ts';
import { type SubscriptionRouteOptions, subscriptionRoutes } from './notifications/routes.ts';
import { type SubscriberRouteOptions, subscriberRoutes } from './notifications/subscriber-routes.ts';
import { type RootRouteOptions, rootRoutes } from './root-routes.ts';
import { type TenantRouteOptions, tenantRoutes } from './tenants/routes.ts';

export interface PlatformRoutesOptions {
  root: RootRouteOptions;
  directory: DirectoryRouteOptions;
  tenants: TenantRouteOptions;
  configuration: ConfigurationRouteOptions;
  events: EventRouteOptions;
  notifications: SubscriptionRouteOptions & SubscriberRouteOptions;
}

export function platformRoutes(options: PlatformRoutesOptions): Route[] {
  const routes = [
    ...rootRoutes(options.root),
    ...directoryRoutes(options.directory),
    ...tenantRoutes(options.tenants),
    ...configurationRoutes(options.configuration),
    ...eventRoutes(options.events),
    ...subscriptionRoutes(options.notifications),
    ...subscriberRoutes(options.notifications),
  ];
  const description = 'Configuration, directory, tenants, notifications and events for clusters that have none.';
  return [...routes, ...documentRoutes({ title: 'Platform server', version: '1', description, routes })];
}
