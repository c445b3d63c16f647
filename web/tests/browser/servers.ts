// Before all tests: the servers that several files of tests look at.

import type { TestProject } from "vitest/node";
import { INPUTS, RUN, TRACE } from "./inputs";
import { view } from "./stepscope";

const SHARED = [...INPUTS.map((input) => [input]), [TRACE, RUN], [RUN, TRACE]];

declare module "vitest" {
  interface ProvidedContext {
    /** Addresses by their inputs. */
    readonly servers: Readonly<Record<string, string>>;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await Promise.all(SHARED.map((inputs) => view(inputs)));
  project.provide("servers", Object.fromEntries(servers.map(({ url }, at) => [SHARED[at]?.join() ?? "", url])));
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
}
