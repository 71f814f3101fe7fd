// All routes of the intake application.
import type { Route } from '../../service/http/http-app.ts';
import type { ApplyRoutesOptions } from './apply-options.ts';
import { checkCodeRoute, sendCodeRoute } from './code-routes.ts';
import { openedDataRoute, saveDataRoute } from './data-routes.ts';
import { applyDefinitionRoute, applyRegisterRoute } from './definition-routes.ts';
import { uploadFileRoute } from './file-routes.ts';
import { deleteDraftRoute, forgetFormRoute, openedFormRoute, startFormRoute, submissionRoute } from './form-routes.ts';

export function applyRoutes(options: ApplyRoutesOptions): Route[] {
  return [
    applyDefinitionRoute(options),
    applyRegisterRoute(options),
    startFormRoute(options),
    openedFormRoute(options),
    deleteDraftRoute(options),
    forgetFormRoute(options),
    sendCodeRoute(options),
    checkCodeRoute(options),
    openedDataRoute(options),
    saveDataRoute(options),
    submissionRoute(options),
    uploadFileRoute(options),
  ];
}
