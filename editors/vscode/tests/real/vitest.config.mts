import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// The real command, and a real VS Code in a real browser.
export default defineConfig({
  cacheDir: "../../node_modules/.vite",
  root: fileURLToPath(new URL(".", import.meta.url)),
  test: {
    include: ["**/*.test.ts"],
    // Each test of the editor begins where the one before has ended.
    bail: 1,
    testTimeout: 240_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000 } },
  },
});
