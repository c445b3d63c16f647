// Which file of the workspace a run means by a name. Runs name files as Python does: whole, or from a folder that Python
// imports from; and they may have been recorded on another machine.

/** What is known of files here. Paths are whole, with `/` between their parts. */
export interface Files {
  /** The folders of the workspace. */
  readonly folders: readonly string[];
  /** Beginnings of paths in runs, and what replaces them. */
  readonly replaced: Readonly<Record<string, string>>;
  readonly exists: (path: string) => Promise<boolean>;
  /** The files of the workspace with this name. */
  readonly named: (name: string) => Promise<readonly string[]>;
}

/** What was found: a file; several that a person has to choose from; one that only a person may open; or nothing. */
export type Found =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "several"; readonly paths: readonly string[] }
  | { readonly kind: "outside"; readonly path: string }
  | { readonly kind: "none" };

/** Parts of a path that are looked at. */
const MAX_PARTS = 64;
/** Files that a person chooses from. */
const MAX_CHOICES = 20;
/** Folders of installed packages, in any environment. */
const PACKAGES = ["site-packages", "dist-packages"];

/** Looks for a file: as it is, as the settings replace it, by the end of its path in a folder, by its name anywhere. */
export async function findFile(named: string, files: Files): Promise<Found> {
  const parts = partsOf(named);
  if (parts === null) return { kind: "none" };
  const isWhole = named.startsWith("/");
  const outside = isWhole && (await files.exists(joined(parts))) ? joined(parts) : null;
  if (outside !== null && isAllowed(outside, files.folders)) return { kind: "file", path: outside };
  const replaced = await inReplaced(named, files);
  if (replaced !== null) return { kind: "file", path: replaced };
  const below = await belowFolder(parts, isWhole, files);
  if (below !== null) return { kind: "file", path: below };
  const anywhere = await byName(parts, isWhole, files);
  if (anywhere.kind === "none" && outside !== null) return { kind: "outside", path: outside };
  return anywhere;
}

/** Whether a whole path may be opened without asking: it is below a folder, or among installed packages. */
export function isAllowed(path: string, folders: readonly string[]): boolean {
  const parts = partsOf(path);
  if (parts === null || !path.startsWith("/")) return false;
  if (parts.slice(0, -1).some((part) => PACKAGES.includes(part))) return true;
  return folders.some((folder) => isBelow(parts, partsOf(folder) ?? []));
}

/** The longest setting that fits replaces the beginning; what results must stay below the folder that was named. */
async function inReplaced(named: string, { replaced, exists }: Files): Promise<string | null> {
  const longestFirst = Object.entries(replaced).sort(([a], [b]) => b.length - a.length);
  for (const [from, to] of longestFirst) {
    if (!startsWithPath(named, from)) continue;
    const target = partsOf(to);
    const parts = partsOf(`${to}/${named.slice(from.length)}`);
    if (target === null || parts === null || !to.startsWith("/") || !isBelow(parts, target)) continue;
    if (await exists(joined(parts))) return joined(parts);
  }
  return null;
}

/** In a folder of the workspace by the longest end of the path. A name alone fits only where the run has no more. */
async function belowFolder(parts: readonly string[], isWhole: boolean, files: Files): Promise<string | null> {
  // What is not whole was imported from some folder: all of it has to fit.
  const shortest = isWhole ? 2 : parts.length;
  for (let length = parts.length; length >= shortest; length--) {
    for (const folder of files.folders) {
      const path = `${folder.replace(/\/+$/, "")}/${parts.slice(-length).join("/")}`;
      if (await files.exists(path)) return path;
    }
  }
  return null;
}

/** Anywhere in the workspace: the file whose path ends most alike. A person decides between equals, and on a name alone. */
async function byName(parts: readonly string[], isWhole: boolean, files: Files): Promise<Found> {
  const ranked = (await files.named(parts.at(-1) ?? ""))
    .map((path) => ({ path, alike: partsAlike(parts, partsOf(path) ?? []) }))
    .filter(({ alike }) => alike > 0 && (isWhole || alike === parts.length))
    .sort((a, b) => b.alike - a.alike || (a.path < b.path ? -1 : 1));
  const [first, second] = ranked;
  if (first === undefined) return { kind: "none" };
  const isSure = first.alike !== second?.alike && (!isWhole || first.alike > 1);
  if (isSure) return { kind: "file", path: first.path };
  return { kind: "several", paths: ranked.slice(0, MAX_CHOICES).map(({ path }) => path) };
}

/** How many parts two paths have in common at their ends. */
function partsAlike(a: readonly string[], b: readonly string[]): number {
  let alike = 0;
  while (alike < a.length && alike < b.length && a.at(-1 - alike) === b.at(-1 - alike)) alike++;
  return alike;
}

/** The parts of a path, without `.` and `..`; null where it leads out of where it begins, or is no path of a file. */
export function partsOf(path: string): string[] | null {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return null;
  }
  return parts.length === 0 || parts.length > MAX_PARTS || path.startsWith("<") ? null : parts;
}

const joined = (parts: readonly string[]): string => `/${parts.join("/")}`;

const isBelow = (parts: readonly string[], folder: readonly string[]): boolean =>
  folder.length > 0 && parts.length > folder.length && folder.every((part, at) => part === parts[at]);

/** Whether `path` begins with whole parts of `start`; everything that is not whole begins with the empty one. */
function startsWithPath(path: string, start: string): boolean {
  if (start === "") return !path.startsWith("/");
  return path.startsWith(start) && (start.endsWith("/") || path[start.length] === "/");
}
