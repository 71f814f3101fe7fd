// What of Node's HTTP is needed at run time, without importing `node:http` by name: that reads all of its exports, and one of
// them loads the WebSocket client and fetch with it, a twentieth of the time to start.
export const { createServer, ServerResponse, STATUS_CODES } = process.getBuiltinModule('node:http');
