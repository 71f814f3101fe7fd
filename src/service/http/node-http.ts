// Node's HTTP at run time. An import of `node:http` would read all of its exports, one of which loads the WebSocket client and
// fetch; that takes a twentieth of the time to start.
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
