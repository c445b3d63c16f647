// A Firefox as it is installed, driven by WebDriver BiDi.

import { existsSync } from "node:fs";
import { type Browser, firefox } from "playwright-core";

/** Where it is: `FIREFOX`, or the one of the system. */
export const FIREFOX =
  process.env.FIREFOX ?? ["/usr/bin/firefox", "/usr/bin/firefox-esr"].find((path) => existsSync(path));

/** A session of WebDriver BiDi, inside playwright-core. */
interface Session {
  send(method: string, params: unknown): Promise<unknown>;
}

/** Starts it. */
export async function launchFirefox(): Promise<Browser> {
  if (!FIREFOX) throw new Error("no Firefox: install one, or name it with FIREFOX");
  const browser = await firefox.launch({ channel: "moz-firefox", executablePath: FIREFOX });
  // Each context is asked for a theme, which Firefox does not know how to answer yet.
  const inner = browser as unknown as { _connection: { toImpl(of: Browser): { _browserSession: Session } } };
  const session = inner._connection.toImpl(browser)._browserSession;
  const send = session.send.bind(session);
  session.send = async (method, params) =>
    method === "emulation.setMediaFeaturesOverride" ? {} : send(method, params);
  return browser;
}
