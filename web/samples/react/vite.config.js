// The development server of the sample. It forwards requests to the token handler, as docs/frontends.md describes.

/** @type {import('vite').UserConfig} */
export default {
  server: {
    proxy: {
      '^/token-handler/': {
        target: 'http://localhost:8080',
        rewrite: (path) => path.replace(/^\/token-handler/, '/token-handler/v1'),
        xfwd: true,
        ws: true,
      },
    },
  },
};
