// Perfetto's engine, as ui.perfetto.dev runs it: trace_processor compiled to WebAssembly, in a worker of a browser. What
// it is asked is what its page asks where ours asks for tiles, searches and sums.

import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { memoryOf } from "./served.mjs";

const PAGE = new URL("perfetto_engine.js", import.meta.url);
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };

/** Opens `trace` with the engine whose files are in `dist`, and calls a function of perfetto_engine.js with `asked`. */
export async function perfetto(trace, { dist, executablePath, call, asked, limit_ms }) {
  const server = createServer((request, response) => {
    const path = request.url.slice(1);
    if (path === "") response.writeHead(200, { "Content-Type": "text/html" }).end("<script src=page.js></script>");
    else if (path === "page.js") response.writeHead(200, { "Content-Type": "text/javascript" }).end(readFileSync(PAGE));
    else if (path === "trace") {
      response.writeHead(200, { "Content-Length": statSync(trace).size });
      createReadStream(trace, { highWaterMark: 1 << 20 }).pipe(response);
    } else {
      const type = TYPES[/\.\w+$/.exec(path)?.[0]];
      if (!type || path.includes("..") || path.includes("/")) return response.writeHead(404).end();
      response.writeHead(200, { "Content-Type": type }).end(readFileSync(join(dist, path)));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  // Only now: its memory would be swept while answers of the server are timed.
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(limit_ms);
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const session = await browser.newBrowserCDPSession();
    const before = await rendererMemory(session);
    const limit = new Promise((_, reject) =>
      setTimeout(() => reject(new Error(`not loaded after ${limit_ms / 1000} s`)), limit_ms).unref(),
    );
    const crashed = new Promise((_, reject) =>
      page.on("crash", () => reject(new Error("the browser's process died: out of memory"))),
    );
    const answers = page.evaluate(([call, asked]) => globalThis[call](asked), [call, asked]);
    const answered = await Promise.race([answers, limit, crashed]);
    const after = await rendererMemory(session);
    return { ...answered, peak_added: after.peak - before.resident, resident_added: after.resident - before.resident };
  } finally {
    await browser.close();
    server.close();
  }
}

/** Memory of the process in which pages and their workers run: the largest of that kind. */
async function rendererMemory(session) {
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => memoryOf(id));
  return renderers.filter((memory) => memory !== null).sort((a, b) => b.resident - a.resident)[0];
}
