// What the keys of the timeline do.

import { followKeys } from "../../canvas/keyboard";
import { type Command, commandOf } from "../../canvas/keys";
import type { Timeline } from "../../canvas/timeline";
import { isTyping } from "../../components/typing";
import type { TimelineController } from "./controller";
import type { PanelTab } from "./Panel";

/** What the page does with the parts of it that are around the canvas. */
export interface PageActs {
  readonly focusSearch: () => void;
  readonly findTrack: () => void;
  readonly showTab: (tab: PanelTab) => void;
}

const actsOf = (controller: TimelineController, page: PageActs): Readonly<Record<Command, () => void>> => ({
  fit: () => controller.fit(),
  next: () => controller.selection.step("after"),
  previous: () => controller.selection.step("before"),
  parent: () => controller.selection.parent(),
  child: () => controller.selection.child(),
  "flow-next": () => controller.selection.flow("forwards"),
  "flow-previous": () => controller.selection.flow("backwards"),
  "path-next": () => controller.alongPath("after"),
  "path-previous": () => controller.alongPath("before"),
  mark: () => controller.mark(),
  search: page.focusSearch,
  "find-track": page.findTrack,
  list: () => page.showTab("list"),
  clear: () => controller.clear(),
});

/** Listens for keys until the function that it returns is called. */
export function followCommands(timeline: Timeline, controller: TimelineController, page: PageActs): () => void {
  const acts = actsOf(controller, page);
  const onPress = (event: KeyboardEvent) => {
    const command = commandOf(event);
    const isOnButton =
      event.target instanceof HTMLElement && event.target.closest("button, a, summary, [role=tab], td, th");
    if (!command || (isOnButton && event.key.startsWith("Arrow"))) return false;
    acts[command]();
    return true;
  };
  const isElsewhere = (event: KeyboardEvent) =>
    event.defaultPrevented || isTyping(event.target) || document.querySelector("dialog[open]") !== null;
  return followKeys(window, timeline, onPress, isElsewhere);
}
