import { defineConfig } from "vitest/config";

// The server answers below whatever path a proxy gives it, with a policy that allows neither inline scripts nor inline
// styles: so addresses are relative, and no asset becomes a data: URL.
export default defineConfig({
  base: "./",
  build: {
    target: "es2023",
    outDir: "dist",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: true,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: {
    host: "127.0.0.1",
    // `npm run dev` beside a running `stepscope view --port 8642`.
    proxy: { "/api": { target: process.env.STEPSCOPE_SERVER ?? "http://127.0.0.1:8642", changeOrigin: true } },
  },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
