// The editor in which a person opens source: the one that the command was told, unless another is chosen here. A habit of
// the person: so it is kept by the browser and not in the address.

import { signal } from "@preact/signals";
import { remember, remembered } from "./remembered";

/** Editors that register an address for themselves; the templates are the command's. */
export const EDITORS: Readonly<Record<string, { readonly words: string; readonly template: string }>> = {
  vscode: { words: "VS Code", template: "vscode://file/{file}:{line}" },
  cursor: { words: "Cursor", template: "cursor://file/{file}:{line}" },
  idea: { words: "IntelliJ IDEA, PyCharm", template: "idea://open?file=/{file}&line={line}" },
};

const KEY = "stepscope-editor";

/** The name of the editor that was chosen; empty when none was. */
export const editor = signal<string>(read());

/** Chooses an editor by its name, none with the empty one. */
export function chooseEditor(name: string): void {
  editor.value = Object.hasOwn(EDITORS, name) ? name : "";
  remember(KEY, editor.value);
}

/** The address with `{file}` and `{line}` in it of the editor that was chosen; null when none was. */
export const chosenTemplate = (): string | null => EDITORS[editor.value]?.template ?? null;

/** The address that opens a line of a file, whose path begins with `/`; null for another path. */
export function editorUrl(template: string, path: string, line: number): string | null {
  if (!path.startsWith("/")) return null;
  const parts: Record<string, string> = { file: encoded(path.replace(/^\/+/, "")), line: String(line) };
  return template.replace(/\{(file|line)\}/g, (_, part: string) => parts[part] ?? "");
}

/** A path as it stands in an address: everything but letters, digits and `/._-~` by its bytes. */
function encoded(path: string): string {
  const byte = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  // Half of a pair cannot be encoded; no path has one.
  return encodeURIComponent(path.replace(/\p{Surrogate}/gu, "\ufffd"))
    .replaceAll("%2F", "/")
    .replace(/[!'()*]/g, byte);
}

function read(): string {
  const kept = remembered(KEY) ?? "";
  return Object.hasOwn(EDITORS, kept) ? kept : "";
}
