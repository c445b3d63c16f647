// Makes `stepscope-VERSION.vsix` of what was bundled, and checks what is in it. Needs no network.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createVSIX, listFiles } from "@vscode/vsce";

const folder = fileURLToPath(new URL("..", import.meta.url));
const read = (name) => readFileSync(join(folder, name), "utf8");

/** All that is in the extension, and nothing else: no sources, no tests, no packages. */
const CONTENTS = [
  "LICENSE.txt",
  "README.md",
  "dist/frame.js",
  "dist/node.js",
  "dist/web.js",
  "media/icon.png",
  "package.json",
];

writeFileSync(
  join(folder, "LICENSE.txt"),
  `${read("../../LICENSE-MIT")}\n${"-".repeat(78)}\n\n${read("../../LICENSE-APACHE")}`,
);
const files = await listFiles({ cwd: folder, dependencies: false });
const contents = files.map((file) => file.replaceAll("\\", "/")).sort();
if (contents.join() !== CONTENTS.join()) {
  throw new Error(
    `the extension would contain\n  ${contents.join("\n  ")}\nand should contain\n  ${CONTENTS.join("\n  ")}`,
  );
}
const { name, version } = JSON.parse(read("package.json"));
const packagePath = join(folder, `${name}-${version}.vsix`);
// The sources are not at an address yet that a link could lead to.
await createVSIX({ cwd: folder, packagePath, dependencies: false, allowMissingRepository: true });
console.log(packagePath);
