// Renders the page /docs from the OpenAPI document. The page has no scripts and loads nothing, so its
// Content-Security-Policy allows only its own stylesheet.
import { docsStylesheet } from './docs-stylesheet.ts';
import { curlOf, exampleOf } from './examples.ts';
import { html, type Markup, page, prose } from './html.ts';
import { pagePolicy } from './page-stylesheet.ts';
import { constraintsOf, type JsonSchema, schemaMarkup } from './schema-markup.ts';

/** The parts of an OpenAPI 3.1 document that the page shows. */
export interface ShownDocument {
  info: { title: string; version: string; description?: string };
  paths?: Record<string, Record<string, Operation>>;
  components?: { schemas?: Record<string, JsonSchema> };
}

export interface Operation {
  operationId?: string;
  summary?: string;
  description?: string;
  security?: Record<string, unknown>[];
  parameters?: Parameter[];
  requestBody?: { content: Content };
  responses?: Record<string, { description?: string; headers?: Record<string, Header>; content?: Content }>;
}

export interface Parameter extends Header {
  name: string;
  in: string;
}

interface Header {
  description?: string;
  required?: boolean;
  schema?: JsonSchema;
}

type Content = Record<string, { schema?: JsonSchema }>;

export interface Call {
  id: string;
  method: string;
  path: string;
  operation: Operation;
}

export const docsPolicy = pagePolicy(docsStylesheet);

/** Renders the page. Its links are relative, so that the page works behind a proxy's path prefix. */
export function docsPage(document: ShownDocument, canTry = false): string {
  const { info, components } = document;
  const calls = callsOf(document);
  const schemas = Object.entries(components?.schemas ?? {});
  const body = html`<a class="skip" href="#calls">Skip to the calls</a>
<header>
<h1>${info.title} <span class="quiet">version ${info.version}</span></h1>
<p>${info.description !== undefined && prose(info.description)}</p>
<p><a href="openapi.json">OpenAPI document</a> for tools</p>
${canTry && html`<p><a href="docs/try">Try calls</a> with the session of the console</p>`}
</header>
<nav aria-label="Calls"><ol>${calls.map(navigationEntry)}</ol></nav>
<main id="calls">
<h2>Calls</h2>
${calls.map((call) => callSection(call, components?.schemas ?? {}))}
<h2>Types</h2>
${schemas.map(schemaSection)}
</main>`;
  return page({ title: `${info.title}: API`, styles: docsStylesheet, body });
}

/** Lists the calls in the document's order. `id` is the HTML id of the call's section. */
export function callsOf({ paths = {} }: ShownDocument): Call[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      id: `${method}${path}`.replace(/[^A-Za-z0-9]+/g, '-').replace(/-$/, ''),
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

function navigationEntry({ id, method, path, operation }: Call): Markup {
  return html`<li><a href="#${id}"><span class="method">${method}</span> <code>${path}</code></a> <span class="quiet">${operation.summary}</span></li>
`;
}

const needsOf: Record<string, string> = {
  bearer: 'an access token (Authorization: Bearer …)',
  session: 'the session cookie',
  form: 'the cookie of the form',
};

/** Describes the credentials of a call. An empty requirement means that a call without credentials is accepted. */
function needs(security: Record<string, unknown>[] | undefined): string {
  const named = (security ?? []).flatMap((requirement) => Object.keys(requirement));
  if (named.length === 0) return 'Needs no access token.';
  const words = named.map((name) => needsOf[name] ?? name).join(' or ');
  return security?.length === named.length ? `Needs ${words}.` : `Takes ${words}, and in some cases none.`;
}

type Schemas = Record<string, JsonSchema>;

function callSection({ id, method, path, operation }: Call, schemas: Schemas): Markup {
  const { operationId, summary, description, security, parameters, requestBody, responses } = operation;
  return html`<article id="${id}" aria-labelledby="${id}-title">
<h3 id="${id}-title"><span class="method">${method}</span> <code>${path}</code></h3>
<p class="summary">${summary} ${operationId !== undefined && html`<span class="quiet">(<code>${operationId}</code>)</span>`}</p>
${description !== undefined && html`<p>${prose(description)}</p>`}
<p class="quiet">${needs(security)}</p>
${parameters && parameters.length > 0 && parametersTable(parameters, id)}
${exampleMarkup({ id, method, path, operation }, schemas)}
${requestBody && html`<h4>Body</h4>${contentMarkup(requestBody.content)}`}
${responses && html`<h4>Responses</h4><dl class="responses">${Object.entries(responses).map(responseMarkup)}</dl>`}
</article>
`;
}

/** Renders the curl command of a call, and the body of the first successful response if it is JSON. */
function exampleMarkup({ id, method, path, operation }: Call, schemas: Schemas): Markup {
  const { security = [], parameters = [], requestBody, responses = {} } = operation;
  const [body] = Object.entries(requestBody?.content ?? {}).map(([type, content]) => ({ type, ...content }));
  const credentials = security.flatMap((requirement) => Object.keys(requirement));
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const setsCookie = success?.headers?.['Set-Cookie'] !== undefined;
  const curl = curlOf({ method, path, parameters, credentials, setsCookie, ...(body && { body }) }, schemas);
  const schema = success?.content?.['application/json']?.schema;
  return html`<h4 id="${id}-example">Example</h4>
<pre tabindex="0" role="region" aria-labelledby="${id}-title ${id}-example"><code>${curl}</code></pre>
${schema !== undefined && html`<p class="quiet" id="${id}-response">Response</p><pre tabindex="0" role="region" aria-labelledby="${id}-title ${id}-response"><code>${JSON.stringify(exampleOf(schema, schemas), undefined, 2)}</code></pre>`}`;
}

function parametersTable(parameters: Parameter[], id: string): Markup {
  return html`<h4 id="${id}-parameters">Parameters</h4>
<div class="scroll" tabindex="0" role="region" aria-labelledby="${id}-title ${id}-parameters"><table>
<thead><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${parameters.map(parameterRow)}</tbody></table></div>`;
}

function parameterRow(parameter: Parameter): Markup {
  const { name, in: location, required, schema, description } = parameter;
  return html`<tr><th scope="row"><code>${name}</code></th><td>${location}${required && ', required'}</td>
<td>${schema !== undefined && parameterType(schema)}</td><td>${description !== undefined && prose(description)}</td></tr>`;
}

function parameterType(schema: JsonSchema): Markup {
  const constraints = constraintsOf(schema);
  return html`${schemaMarkup(schema)}${constraints && `, ${constraints}`}`;
}

function responseMarkup([status, response]: [string, NonNullable<Operation['responses']>[string]]): Markup {
  const headers = Object.entries(response.headers ?? {});
  const problem = response.content?.['application/problem+json']?.schema;
  return html`<dt><code>${status}</code></dt><dd>${response.description !== undefined && prose(response.description)}${problem !== undefined && html` (${schemaMarkup(problem)})`}
${headers.length > 0 && html`<p>Headers:</p><ul>${headers.map(headerItem)}</ul>`}
${response.content && problem === undefined && contentMarkup(response.content)}</dd>`;
}

function headerItem([name, header]: [string, Header]): Markup {
  return html`<li><code>${name}</code> <span class="quiet">${header.description !== undefined && prose(header.description)}</span></li>`;
}

function contentMarkup(content: Content): Markup {
  return html`${Object.entries(content).map(
    ([type, { schema }]) => html`<p class="quiet"><code>${type}</code></p>
${schema !== undefined && html`<div class="schema">${schemaMarkup(schema)}</div>`}`,
  )}`;
}

function schemaSection([name, schema]: [string, JsonSchema]): Markup {
  const described = typeof schema === 'object' ? schema.description : undefined;
  return html`<article id="type-${name}" aria-labelledby="type-${name}-title"><h3 id="type-${name}-title">${name}</h3>
${described !== undefined && html`<p>${prose(described)}</p>`}
<div class="schema">${schemaMarkup(schema)} ${constraintsOf(schema)}</div></article>
`;
}
