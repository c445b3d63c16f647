import { defineConfig } from "vitest/config";

// One browser and a few servers at a time: these tests are to be right, not fast.
export default defineConfig({
  cacheDir: "../../node_modules/.vite",
  root: new URL(".", import.meta.url).pathname,
  test: { include: ["**/*.test.ts"], fileParallelism: false, testTimeout: 120_000, hookTimeout: 120_000 },
});
