// The extension members of problems (RFC 9457 section 3.2), for the OpenAPI documents.
import { z } from 'zod';

const moment = z.iso.datetime();
const member = <T extends z.ZodType>(schema: T, description: string) => schema.optional().meta({ description });

export const problemMembers = {
  formId: member(z.string(), 'The form that the applicant already has (`form-exists`)'),
  formStatus: member(z.string(), 'The status of the form, if it does not permit the operation'),
  opens: member(moment.nullable(), 'Start of the current or next time in which forms are accepted (`intake-closed`)'),
  closes: member(moment.nullable(), 'End of the time in which forms were or will be accepted (`intake-closed`)'),
  suspendedSince: member(moment, 'Start of the suspension of the data schema (`definition-invalid`)'),
  suspendedUntil: member(moment, 'Time from which the data schema can be used again (`definition-invalid`)'),
  truncated: member(z.boolean(), 'True if the data has more errors than `errors` lists'),
  written: member(z.array(z.string()), 'The parts of a register change that were carried out before the failure'),
};
