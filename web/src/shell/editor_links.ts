// In the frame of an editor, a stack frame leads to the editor instead of the page of its file.

import { framingEditor, openInFramingEditor } from "../state/frame";
import { route } from "../state/route";
import { paramOf, parseRoute } from "../state/url";

/** A line of a source file. */
interface Place {
  readonly file: string;
  readonly line: number;
}

/** Follows plain clicks on links to a line of source. The page *Source* leads on within itself, and has a button. */
export function followEditorLinks(): () => void {
  const follow = (event: MouseEvent) => {
    if (framingEditor.peek() === null || route.peek().page === "source" || !isPlain(event)) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    const place = placeIn(link?.getAttribute("href") ?? "");
    if (place === null) return;
    event.preventDefault();
    openInFramingEditor(place.file, place.line);
  };
  document.addEventListener("click", follow);
  return () => document.removeEventListener("click", follow);
}

/** With a key held, a person wants the page itself. */
const isPlain = (event: MouseEvent): boolean =>
  event.button === 0 && !event.defaultPrevented && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);

/** The line of source that an address of these pages leads to; null for any other address. */
export function placeIn(href: string): Place | null {
  if (!href.startsWith("#")) return null;
  const target = parseRoute(href);
  const [file, line] = [paramOf(target, "file"), paramOf(target, "line")];
  if (target.page !== "source" || !file || line === undefined || !/^[1-9]\d{0,8}$/.test(line)) return null;
  return { file, line: Number(line) };
}
