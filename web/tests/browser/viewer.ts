// What most files of tests begin with: a browser, a server of some inputs, and pages of it that are watched.

import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { at, launch, open, settled, type Watched } from "./browser";
import { served } from "./served";
import type { View } from "./stepscope";

/** A browser and a server, from before the first test of a file, or of a part of it, until after the last. */
export interface Viewer {
  readonly browser: Browser;
  readonly server: View;
  /** Opens a page of the server, at this place, and waits until everything on it is shown. */
  readonly show: (place?: string, options?: BrowserContextOptions) => Promise<Watched>;
}

/**
 * Starts a browser and the server of these inputs, or the one that `start` starts, for the tests around it. An `afterAll` that
 * stands before it runs when both have ended: that is where a folder is removed that the server reads.
 */
export function viewerOf(start: readonly string[] | (() => Promise<View>)): Viewer {
  let [browser, server] = [] as unknown as [Browser, View];
  beforeAll(async () => {
    browser = await launch();
    server = typeof start === "function" ? await start() : await served(start);
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
  });
  return {
    get browser() {
      return browser;
    },
    get server() {
      return server;
    },
    show: async (place = "", options = {}) => {
      const watched = await open(browser, place === "" ? server.url : at(server.url, place), options);
      await settled(watched.page);
      return watched;
    },
  };
}
