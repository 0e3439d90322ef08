import { defineConfig } from 'vite';
import { thirdPartyLicenses } from './licenses.ts';

const licenses = thirdPartyLicenses('THIRD_PARTY_LICENSES.txt');

export default defineConfig({
  base: './', // relative addresses: the server may sit under a path prefix
  plugins: [licenses.write],
  resolve: { dedupe: ['graphql', 'react', 'react-dom', 'monaco-editor'] }, // GraphiQL breaks with two of any of these
  worker: { format: 'es', plugins: () => [licenses.collect] },
  build: {
    outDir: '../reverie/web/assets',
    emptyOutDir: true,
    assetsDir: 'static', // served as immutable: every name in it carries a hash of the content
    assetsInlineLimit: 0, // no data: addresses, which the content security policy refuses
    modulePreload: { polyfill: false }, // no inline script, for the same reason
    reportCompressedSize: false,
    chunkSizeWarningLimit: 6000, // Monaco is that big
    target: 'es2022',
    rolldownOptions: {
      input: 'graphiql.html',
      onLog(level, log, handle) {
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log); // "use client" says nothing to a browser
      },
    },
  },
});
