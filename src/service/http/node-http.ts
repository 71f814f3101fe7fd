// Node's HTTP module, loaded at run time. An import of `node:http` would evaluate all its exports, one of which loads
// the WebSocket client and fetch. That takes 5 % of the startup time.
export const { createServer, get, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
