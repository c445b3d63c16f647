// What `package.json` promises.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const { commands, customEditors, configuration, menus } = manifest.contributes;
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8").replace(/\s+/g, " ");

test("a trace opens as text unless a person asks for the viewer", () => {
  expect(customEditors.map((editor: { priority: string }) => editor.priority)).toEqual(["option"]);
});

test("only formats are named that the command reads", () => {
  const patterns = customEditors[0].selector.map((one: { filenamePattern: string }) => one.filenamePattern);
  const known = /^(run\.json|\*\.pt\.trace\.json(\.(gz|zst|zip))?|\*\.pfw(\.gz)?)$/;
  expect(patterns.filter((pattern: string) => !known.test(pattern))).toEqual([]);
});

test("nothing is added to the code unless it is asked for", () => {
  expect(configuration.properties["stepscope.codeLens"].default).toBe(false);
});

test("every setting and every command is described", () => {
  for (const name of Object.keys(configuration.properties)) expect(readme).toContain(`\`${name}\``);
  for (const { title } of commands) expect(readme).toContain(title);
});

test("a workspace that is not trusted names no program and no folder", () => {
  const restricted: string[] = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  const free = Object.keys(configuration.properties).filter((name) => !restricted.includes(name));
  expect(free).toEqual(["stepscope.codeLens", "stepscope.hotLines.threshold"]);
});

test("menus lead to commands that there are", () => {
  const known = commands.map(({ command }: { command: string }) => command);
  const used: { command: string }[] = Object.values(menus).flat() as { command: string }[];
  expect(used.filter(({ command }) => !known.includes(command))).toEqual([]);
});

test("a condition of the extension hides no command before the extension has started", () => {
  const { command } = commands.find((one: { enablement?: string }) => one.enablement);
  expect(command).toBe("stepscope.recordCurrentFile");
  const conditions = [...commands, ...menus.commandPalette].map((one) => one.enablement ?? one.when ?? "");
  expect(conditions.filter((condition) => /(^|[^!.])stepscope\./.test(condition))).toEqual([]);
});
