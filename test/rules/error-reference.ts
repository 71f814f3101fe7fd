// Generates docs/errors.md from the catalogue of problem types.
import { type ProblemType, problemTypes } from '../../src/service/http/problem-types.ts';

const introduction = `# Errors

Every error response of the form service, the token handler and the platform server is a problem document
(RFC 9457, \`application/problem+json\`), except errors whose body a protocol defines (OAuth), responses that the token
handler forwards from an upstream, and the [pages](pages.md) that a browser gets when a sign-in or logout fails.

\`\`\`json
{
  "type": "urn:formgate:problem:form-locked",
  "title": "The form is locked",
  "status": 409,
  "detail": "The form is locked; an administrator can unlock it.",
  "instance": "/form/v1/forms/0197f3a2-7c1e-7b4d-9a55-3f0c8e2d6b11",
  "errorMessage": "The form is locked; an administrator can unlock it."
}
\`\`\`

- Decide by \`type\` and \`status\`. They are stable; \`title\` and \`detail\` are texts for people and may change
  ([0015](decisions/0015-problem-types-are-urns.md)).
- Every process serves a page about each problem type at \`/problems/<slug>\`, where the slug is the last part of \`type\`:
  \`/problems/form-locked\` explains \`urn:formgate:problem:form-locked\`, as HTML, or as JSON with
  \`Accept: application/json\`. Some ingresses do not publish this path; this page lists the same types.
- \`errors\` of \`invalid-request\`, if present, lists the invalid fields: \`pointer\` is a JSON pointer (RFC 6901) into the
  body, or begins with \`/params\`, \`/query\` or \`/headers\`. For form data, it begins with \`/data\`, as in the body of
  a save, even if the request does not contain the form data (\`submit\`).
- \`errorMessage\` repeats \`detail\` for clients of the older platform.

This page is written by \`npm run docs\` from \`src/service/http/problem-types.ts\`; a test fails if it differs.

| slug | status | title | meaning | what to do |
| --- | --- | --- | --- | --- |`;

/** Returns the slug and status of each row in the table of docs/errors.md. */
export function slugsOfPage(page: string): [slug: string, status: number][] {
  return [...page.matchAll(/^\| `([^`]+)` \| (\d{3}) \|/gm)].map(([, slug = '', status]) => [slug, Number(status)]);
}

const rows = Object.entries<ProblemType>(problemTypes).map(
  ([slug, { status, title, meaning, action }]) => `| \`${slug}\` | ${status} | ${title} | ${meaning} | ${action} |`,
);

/** The whole text of docs/errors.md. */
export const errorPage = `${[introduction, ...rows].join('\n')}\n`;
