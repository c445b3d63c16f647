// What the keys of the timeline do.

import { type Command, commandOf, heldOf } from "../../canvas/keys";
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
  mark: () => controller.mark(),
  search: page.focusSearch,
  "find-track": page.findTrack,
  list: () => page.showTab("list"),
  clear: () => controller.clear(),
});

/** Listens for keys until the function that it returns is called. */
export function followCommands(timeline: Timeline, controller: TimelineController, page: PageActs): () => void {
  const acts = actsOf(controller, page);
  const { motion } = timeline;
  const onDown = (event: KeyboardEvent) => {
    const { target } = event;
    if (event.defaultPrevented || isTyping(target) || document.querySelector("dialog[open]")) return;
    const held = heldOf(event);
    const command = commandOf(event);
    const isOnButton = target instanceof HTMLElement && target.closest("button, a, summary, [role=tab], td, th");
    if (held) {
      motion.press(held);
      timeline.redraw();
    } else if (command && !(isOnButton && event.key.startsWith("Arrow"))) acts[command]();
    else return;
    event.preventDefault();
  };
  const onUp = (event: KeyboardEvent) => {
    const held = heldOf({ key: event.key, ctrlKey: false, metaKey: false, altKey: false });
    if (held) motion.release(held);
  };
  const onBlur = () => motion.releaseAll();
  addEventListener("keydown", onDown);
  addEventListener("keyup", onUp);
  addEventListener("blur", onBlur);
  return () => {
    removeEventListener("keydown", onDown);
    removeEventListener("keyup", onUp);
    removeEventListener("blur", onBlur);
  };
}
