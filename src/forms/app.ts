// The form service's route table. Each route lists its guards. The handlers then read the form, and the policy decides
// what the caller may do with it.
import { join } from 'node:path';
import type { Route } from '../service/http/http-app.ts';
import { type AboutOptions, aboutRoutes } from '../service/openapi/about-routes.ts';
import { documentRoutes } from '../service/openapi/openapi.ts';
import type { ApplyRoutesOptions } from './apply/apply-options.ts';
import { applyRoutes } from './apply/routes.ts';
import { listDefinitionsRoute, readDefinitionRoute } from './definitions/catalogue-routes.ts';
import { checkDefinitionRoute, type DefinitionRoutesOptions } from './definitions/routes.ts';
import { createFormRoute } from './forms/creation-routes.ts';
import { readDataRoute, updateDataRoute } from './forms/data-routes.ts';
import { readHistoryRoute } from './forms/history-routes.ts';
import { listFormsRoute } from './forms/list-routes.ts';
import { operateFormRoute } from './forms/operation-routes.ts';
import { deleteFormRoute, type FormRoutesOptions, readFormRoute } from './forms/routes.ts';
import { type OperationsRouteOptions, readOperationsRoute } from './operations/routes.ts';
import { pagesDirectory } from './pages/built-pages.ts';
import { type PageRoutesOptions, pageRoutes } from './pages/routes.ts';
import { listQuarantineRoute, type QuarantineRoutesOptions, releaseItemRoute } from './quarantine/routes.ts';
import type { RegisterRoutesOptions } from './registers/register-routes-options.ts';
import { registerRoutes } from './registers/routes.ts';

export interface FormsRoutesOptions {
  about: Pick<AboutOptions, 'checks' | 'clock'>;
  /** The options of the intake application. Undefined if the intake application is off. */
  apply: ApplyRoutesOptions | undefined;
  definitions: DefinitionRoutesOptions;
  forms: FormRoutesOptions;
  operations: OperationsRouteOptions;
  pages: PageRoutesOptions;
  quarantine: QuarantineRoutesOptions;
  registers: RegisterRoutesOptions;
}

const name = 'Form service';
const description =
  'Draft forms for applicants with and without an account, one-time codes for them, and data registers.';

export function formsRoutes(options: FormsRoutesOptions): Route[] {
  const { about, apply, definitions, forms, operations, pages, quarantine, registers } = options;
  const routes = [
    ...aboutRoutes({ ...about, name, description, api: '/form/v1' }),
    createFormRoute(forms),
    listFormsRoute(forms),
    readFormRoute(forms),
    readHistoryRoute(forms),
    operateFormRoute(forms),
    deleteFormRoute(forms),
    readDataRoute(forms),
    updateDataRoute(forms),
    listDefinitionsRoute(definitions),
    readDefinitionRoute(definitions),
    checkDefinitionRoute(definitions),
    readOperationsRoute(operations),
    listQuarantineRoute(quarantine),
    releaseItemRoute(quarantine),
    ...registerRoutes(registers),
    ...(apply ? applyRoutes(apply) : []),
  ];
  // The script of `/docs/try` uses the console's session, so it is served only together with the console.
  const tryScript = pages.pages.includes('console') ? join(pagesDirectory, 'try/try.js') : undefined;
  return [
    ...routes,
    ...documentRoutes({ title: name, version: '1', description, routes, tryScript }),
    ...pageRoutes(pages),
  ];
}
