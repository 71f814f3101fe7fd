// Shows a request as a curl command. In the command, shell variables stand for the token and the addresses: the page
// has no token, and services have other addresses inside a cluster.
import { type ApiRequest, addressOf, bodyOf, type Target } from './request.ts';

const bases: Record<Target, string> = {
  'form-service': '$FORMGATE_URL',
  'configuration-service': '$CONFIGURATION_URL',
  'token-handler': '$TOKEN_HANDLER_URL',
};

/** Returns the command for a POSIX shell, without a trailing line break. */
export function curlOf(request: ApiRequest): string {
  const method = request.method ?? 'GET';
  const body = bodyOf(request);
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}"${bases[request.target]}"${quote(addressOf(request))}`,
    '-H "Authorization: Bearer $TOKEN"',
    ...Object.entries(request.headers ?? {}).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(body ? [`-H ${quote(`Content-Type: ${body.type}`)}`, `--data-binary ${quote(body.text)}`] : []),
  ];
  return lines.join(' \\\n  ');
}

/** Within single quotes, only the quote itself is special (POSIX.1-2024, Shell Command Language, 2.2.2). */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
