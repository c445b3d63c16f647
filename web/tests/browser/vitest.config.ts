import { defineConfig } from "vitest/config";

// Two files at a time, each with a browser of its own: a test waits for pages about half of its time.
export default defineConfig({
  cacheDir: "../../node_modules/.vite",
  root: new URL(".", import.meta.url).pathname,
  test: {
    include: ["**/*.test.ts"],
    globalSetup: "./servers.ts",
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
