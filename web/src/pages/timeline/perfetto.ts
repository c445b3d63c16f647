// Hands a trace to Perfetto's page, as that page asks for it: it says when it listens, then it gets the bytes. Nothing
// is sent before a person asks for it, and then to that page only.

export const PERFETTO = "https://ui.perfetto.dev";

/** The ms after which it is asked again whether it listens, and how often it is asked at most. */
const AGAIN_MS = 50;
const TRIES_MAX = 600;

/**
 * Opens Perfetto and gives it what `fetchTrace` gives. To be called from a click: otherwise browsers open nothing.
 */
export async function openInPerfetto(title: string, fetchTrace: () => Promise<ArrayBuffer>): Promise<void> {
  const page = window.open(PERFETTO);
  if (!page) throw new Error("the browser did not open Perfetto: allow this page to open windows");
  const [buffer] = await Promise.all([fetchTrace(), listening(page)]);
  page.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
}

function listening(page: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    let tries = 0;
    const timer = setInterval(() => {
      tries++;
      if (tries > TRIES_MAX || page.closed) done(new Error("Perfetto does not answer"));
      else page.postMessage("PING", PERFETTO);
    }, AGAIN_MS);
    const onMessage = (event: MessageEvent<unknown>) => {
      if (event.origin === PERFETTO && event.source === page && event.data === "PONG") done();
    };
    const done = (error?: Error) => {
      clearInterval(timer);
      removeEventListener("message", onMessage);
      if (error) reject(error);
      else resolve();
    };
    addEventListener("message", onMessage);
  });
}
