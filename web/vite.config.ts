import { defineConfig } from 'vite';

// In development the API is a real server's: ATHANOR_URL=http://127.0.0.1:PORT npm run dev
const server = process.env.ATHANOR_URL ?? 'http://127.0.0.1:7070';
const proxy = {
  '/api': {
    target: server,
    changeOrigin: true,
    // The server refuses pages of other origins; the development server's is one.
    headers: { origin: server },
  },
};

export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'none' },
  build: {
    target: 'es2022',
    assetsDir: 'ui/assets',
    // Nothing inline: the page's CSP allows files of this server only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
  },
  server: { proxy },
  preview: { proxy },
});
