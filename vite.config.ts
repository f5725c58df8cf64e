import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** The dashboard: src/faces/web to dist/faces/web. */
export default defineConfig({
  root: fileURLToPath(new URL('src/faces/web', import.meta.url)),
  base: '/',
  build: {
    outDir: fileURLToPath(new URL('dist/faces/web', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
});
