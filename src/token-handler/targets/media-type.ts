// Decides whether a response is inert: no browser that shows it as a document would run scripts in it. Pure. It knows the
// inert types and takes every other type for active, because browsers know more active types than any list.

/**
 * Browsers show these without running scripts in the page's origin. None ends with `+xml`: such a type is XML, and XML can
 * hold scripts (MIME Sniffing standard, section 4.6).
 */
const inertType = new RegExp(
  [
    '^[\\t ]*(?:',
    'text/(?:plain|csv|css|calendar|markdown|vtt|event-stream)',
    '|image/(?:png|apng|jpeg|jpg|gif|webp|avif|heic|heif|jxl|bmp|tiff|x-icon|vnd\\.microsoft\\.icon)',
    '|(?:audio|video|font)/[\\w.-]+',
    '|application/(?:[\\w.-]+\\+)?json',
    '|application/(?:pdf|octet-stream|zip|gzip|x-ndjson|jsonl|msgpack|cbor|wasm|msword|rtf)',
    '|application/vnd\\.(?:ms-(?:excel|powerpoint)|(?:openxmlformats-officedocument|oasis\\.opendocument)\\.[\\w.-]+)',
    ')[\\t ]*(?:;.*)?$',
  ].join(''),
  'i',
);

/** Values seen so far: upstreams send few different ones. */
const remembered = new Map<string, boolean>();
const mostRemembered = 500;
const longestRemembered = 100;

/**
 * `contentType`: of all Content-Type lines. Browsers combine the lines and take the last value that they can parse (Fetch
 * standard, "extract a MIME type"), but they differ in what they can parse: Chromium reads `text/html xxx` as HTML. So every
 * value has to be a known inert type, also where a quoted comma would only seem to begin another value.
 */
export function isInert(contentType: string | string[] | undefined): boolean {
  if (contentType === undefined) return false;
  if (typeof contentType !== 'string') return contentType.every(isInert);
  let isKnownInert = remembered.get(contentType);
  if (isKnownInert !== undefined) return isKnownInert;
  isKnownInert = contentType.split(',').every((value) => inertType.test(value));
  if (remembered.size < mostRemembered && contentType.length <= longestRemembered)
    remembered.set(contentType, isKnownInert);
  return isKnownInert;
}
