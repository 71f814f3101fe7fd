// Byte-exact responses that no HTTP library would send, or that a proxy is tempted to change. RFC 9110 and RFC 9112
// define how a proxy must treat each.
const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const chunked = 'Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n';

/** Responses that no proxy may forward: a name, and the bytes in one or several packets. */
export const brokenResponses: [string, string | string[]][] = [
  ['sends 100 Continue that nobody asked for', `HTTP/1.1 100 Continue\r\n\r\n${ok}`],
  ['sends 100 Continue in a packet of its own', ['HTTP/1.1 100 Continue\r\n\r\n', ok]],
  [
    'sends 100 Continue after another informational response',
    `HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 X\r\n\r\n${ok}`,
  ],
  ['switches protocols unasked', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
  ['switches protocols unasked, and names none', `HTTP/1.1 101 X\r\n\r\n${ok}`],
  ['has a coding beside chunked', `HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`],
  ['has a coding beside chunked on a line of its own', `HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n${chunked}`],
  ['has chunked twice', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ['has a coding other than chunked', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok'],
  ['has an unknown coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok'],
  ['has a length and a coding', `HTTP/1.1 200 OK\r\nContent-Length: 2\r\n${chunked}`],
  ['has two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok'],
  ['has a list of lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok'],
  ['has a negative length', 'HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok'],
  ['has a length with a sign', 'HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok'],
  ['has a length beyond 64 bits', 'HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551618\r\n\r\nok'],
  ['folds a line', 'HTTP/1.1 200 OK\r\nX-A: b\r\n Set-Cookie: c=d\r\nContent-Length: 2\r\n\r\nok'],
  ['folds its first line', 'HTTP/1.1 200 OK\r\n X-A: b\r\nContent-Length: 2\r\n\r\nok'],
  ['ends lines with a bare line feed', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
  ['ends one line with a bare line feed', 'HTTP/1.1 200 OK\r\nX-A: b\nX-C: d\r\nContent-Length: 2\r\n\r\nok'],
  ['ends one line with a bare carriage return', 'HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: c=d\r\n\r\n'],
  ['has a NUL in a header', 'HTTP/1.1 200 OK\r\nX-A: b\0c\r\nContent-Length: 2\r\n\r\nok'],
  ['has a space in a name', 'HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 2\r\n\r\nok'],
  ['has a space before a colon', 'HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok'],
  ['has no status', 'HTTP/1.1 OK\r\n\r\nok'],
  ['has a status beyond three digits', 'HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok'],
  ['has a status below 100', 'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok'],
  ['is of HTTP/0.9', '<p>ok</p>'],
  ['is of another version', 'HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
];

/** Responses that the proxy forwards, with a pattern for what the client must receive. */
export const oddResponses: [
  name: string,
  bytes: string,
  passedOnAs: RegExp,
  asking?: { method?: string; version?: string },
][] = [
  [
    'after several informational ones',
    `HTTP/1.1 103 X\r\nLink: <a>\r\n\r\nHTTP/1.1 102 X\r\n\r\n${ok}`,
    /^HTTP\/1\.1 103 [\s\S]+^HTTP\/1\.1 102 [\s\S]+^HTTP\/1\.1 200 OK\r\n[\s\S]+ok$/m,
  ],
  [
    'without a Trailer header that announces nothing',
    `HTTP/1.1 200 OK\r\nTrailer: X-T\r\nContent-Length: 2\r\n\r\nok`,
    /^HTTP\/1\.1 200 OK\r\n(?![\s\S]*trailer)[\s\S]+\r\n\r\nok$/i,
  ],
  [
    'without a Trailer header for HEAD',
    `HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n`,
    /^HTTP\/1\.1 200 OK\r\n(?![\s\S]*trailer)[\s\S]+\r\n\r\n$/i,
    { method: 'HEAD' },
  ],
  [
    'without a Trailer header for HTTP/1.0',
    `HTTP/1.1 200 OK\r\nTrailer: X-T\r\n${chunked}`,
    /^HTTP\/1\.1 200 OK\r\n(?![\s\S]*(?:trailer|chunked))[\s\S]+\r\n\r\nok$/i,
    { version: '1.0' },
  ],
  [
    'with its trailers',
    `HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n`,
    /trailer: X-T\r\n[\s\S]+0\r\nX-T: 1\r\n\r\n$/i,
  ],
  [
    'with a coding in capitals',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    /200 OK[\s\S]+\r\n\r\n2\r\nok\r\n0\r\n\r\n$/,
  ],
  ['from HTTP/1.0, up to its end', 'HTTP/1.0 200 OK\r\n\r\nok', /200 OK[\s\S]+\r\n\r\n2\r\nok\r\n0\r\n\r\n$/],
  [
    'with a reason phrase of its own left out',
    'HTTP/1.1 200 Fine, thank you\r\nContent-Length: 2\r\n\r\nok',
    /^HTTP\/1\.1 200 OK\r\n/,
  ],
  [
    'with a length that a double cannot hold, digit by digit',
    'HTTP/1.1 200 OK\r\nContent-Length: 9007199254740993\r\n\r\n',
    /content-length: 9007199254740993\r\n/i,
    { method: 'HEAD' },
  ],
  [
    'without the length of a 204',
    'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok',
    /^HTTP\/1\.1 204 No Content\r\n(?![\s\S]*content-length)[\s\S]+\r\n\r\n$/i,
  ],
  [
    'without the body of a 304',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok',
    /^HTTP\/1\.1 304 Not Modified\r\n[\s\S]+\r\n\r\n$/,
  ],
  ['without the body of a response to HEAD', ok, /^HTTP\/1\.1 200 OK\r\n[\s\S]+\r\n\r\n$/, { method: 'HEAD' }],
  ['without the bytes behind its end', `${ok}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison`, /\r\n\r\nok$/],
];
