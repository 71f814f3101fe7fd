// Node's HTTP module, loaded at run time. An `import` of `node:http` would evaluate all its exports. One of them loads
// the WebSocket client and fetch, which takes 5 % of the startup time.
export const { createServer, get, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
