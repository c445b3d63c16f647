import { defineConfig } from "vitest/config";
import { FIREFOX } from "./firefox.ts";

/** What a person does, also in Firefox where there is one. */
const JOURNEYS = ["journey", "keyboard", "query", "tasks"].map((name) => `**/${name}.test.ts`);
const firefox = { name: "firefox", include: JOURNEYS, env: { STEPSCOPE_TEST_BROWSER: "firefox" } };

// Two files at a time, each with a browser of its own: a test waits for pages about half of its time.
export default defineConfig({
  cacheDir: "../../node_modules/.vite",
  root: new URL(".", import.meta.url).pathname,
  test: {
    globalSetup: "./servers.ts",
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [{ name: "chromium", include: ["**/*.test.ts"] }, ...(FIREFOX ? [firefox] : [])].map((test) => ({
      extends: true,
      test,
    })),
  },
});
