// Bundles the three programs of the extension into `dist`: the entries for Node and for a browser, and the webview's script.

import { fileURLToPath } from "node:url";
import { build } from "vite";

const root = fileURLToPath(new URL("..", import.meta.url));

/** One file without imports but those of the editor, and of Node where there is one. */
async function bundle(entry, name, format, external) {
  await build({
    root,
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    build: {
      target: "es2022",
      outDir: "dist",
      emptyOutDir: false,
      minify: false,
      lib: { entry, name: "stepscope", formats: [format], fileName: () => `${name}.js` },
      rollupOptions: { external },
    },
  });
}

await bundle("src/node.ts", "node", "cjs", ["vscode", /^node:/]);
await bundle("src/web.ts", "web", "cjs", ["vscode"]);
await bundle("src/viewer/frame_script.ts", "frame", "iife", []);
