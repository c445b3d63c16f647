// The page in a headless Chromium without a GPU: how long it takes to show the timeline of a run that is read, and how
// long its frames take while somebody moves and zooms.

/** Zooms and moves, as many in as out, so that tiles of many levels are drawn and stretched. */
const KEYS = ["w", "d", "w", "a", "s", "d", "s", "a"];

/** Opens the timeline, moves, and closes the browser again. A screenshot of the last frame goes to `shot`. */
export async function frames(url, { executablePath, moves, width = 1500, height = 900, shot }) {
  // Only now: its memory would be swept while answers of the server are timed.
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    // The page's files and the run are in memory; the browser has nothing of them.
    const opened = await open(browser, `${url}#timeline`, width, height);
    const { page, canvas } = opened;
    const heap = await page.context().newCDPSession(page);
    const moved = await move(browser, page, canvas, moves);
    const { JSHeapUsedSize } = await metrics(heap);
    if (shot) await page.screenshot({ path: shot });
    return { ...opened.times, ...moved, heap_bytes: JSHeapUsedSize };
  } finally {
    await browser.close();
  }
}

async function open(browser, address, width, height) {
  const page = await browser.newPage({ viewport: { width, height } });
  page.on("pageerror", (error) => console.error(error));
  // Told by the page itself, since asking it takes time.
  await page.addInitScript(() => {
    const look = () => {
      const canvas = document.querySelector(".timeline-canvas canvas");
      const isDrawn = canvas?.frames_ms?.length > 0 && canvas.ariaBusy !== "true";
      if (isDrawn && canvas.frames_ms.length > 2) globalThis.drawn_ms = performance.now();
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.goto(address);
  await page.waitForFunction(() => globalThis.drawn_ms !== undefined);
  const times = await page.evaluate(() => ({
    paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
    drawn_ms: globalThis.drawn_ms,
  }));
  return { page, canvas: page.locator(".timeline-canvas canvas"), times };
}

async function move(browser, page, canvas, moves) {
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.4);
  await browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await canvas.evaluate((element) => {
    element.frames_ms.length = 0;
    globalThis.between_ms = [];
    let before = 0;
    const look = (now) => {
      if (before > 0) globalThis.between_ms.push(now - before);
      before = now;
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  for (let nth = 0; nth < moves; nth++) {
    const key = KEYS[nth % KEYS.length];
    await page.keyboard.down(key);
    await page.waitForTimeout(120);
    await page.keyboard.up(key);
  }
  const drawn = await canvas.evaluate((element) => [...element.frames_ms]);
  const between = await page.evaluate(() => globalThis.between_ms);
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  // What a processor worked, however many others wanted it meanwhile.
  const cpu_ms = (name) =>
    traceEvents.filter((event) => event.name === name && event.tdur).map((event) => event.tdur / 1000);
  return { drawn, between, cpu: cpu_ms("FireAnimationFrame").filter((ms) => ms > 0.3), raster: cpu_ms("RasterTask") };
}

async function metrics(session) {
  await session.send("Performance.enable");
  const { metrics } = await session.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}
