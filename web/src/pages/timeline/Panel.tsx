import type { TimelineController } from "./controller";
import { Events } from "./Events";
import { ListView } from "./ListView";
import { Marks } from "./Marks";
import { type PanelPlace, place } from "./panel_place";
import { RangeSums } from "./RangeSums";
import { SliceView } from "./SliceView";

const TABS = [
  ["slice", "Slice"],
  ["range", "Range"],
  ["events", "Events"],
  ["list", "List"],
  ["marks", "Marks"],
] as const;
export type PanelTab = (typeof TABS)[number][0];

interface Props {
  readonly controller: TimelineController;
  readonly tab: PanelTab;
  readonly onTab: (tab: PanelTab) => void;
}

const change = (to: Partial<PanelPlace>) => {
  place.value = { ...place.value, ...to };
};

/** Beside the canvas: what is selected, the sums or the events of a range, what is shown as a list, or the marks. */
export function Panel({ controller, tab, onTab }: Props) {
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const at = TABS.findIndex(([id]) => id === tab);
    const [next] = TABS[(at + by + TABS.length) % TABS.length] ?? TABS[0];
    onTab(next);
    document.getElementById(`timeline-tab-${next}`)?.focus();
  };
  const { isRight, isShut } = place.value;
  const open = (next: PanelTab) => {
    if (isShut) place.value = { ...place.value, isShut: false };
    onTab(next);
  };
  return (
    <section class="timeline-panel" aria-label="Details">
      <div class="timeline-panel-bar">
        <div role="tablist" aria-label="Details" onKeyDown={onKeyDown}>
          {TABS.map(([id, title]) => (
            <button
              key={id}
              id={`timeline-tab-${id}`}
              type="button"
              role="tab"
              tabIndex={tab === id ? 0 : -1}
              aria-selected={tab === id}
              aria-controls="timeline-panel"
              onClick={() => open(id)}
            >
              {title}
            </button>
          ))}
        </div>
        <button type="button" onClick={() => change({ isRight: !isRight, isShut: false })}>
          {isRight ? "Below" : "On the right"}
        </button>
        <button type="button" aria-expanded={!isShut} onClick={() => change({ isShut: !isShut })}>
          {isShut ? "Open" : "Close"}
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <div id="timeline-panel" role="tabpanel" tabIndex={0} aria-labelledby={`timeline-tab-${tab}`} hidden={isShut}>
        {tab === "slice" && <SliceView controller={controller} />}
        {tab === "range" && <RangeSums controller={controller} />}
        {tab === "events" && <Events controller={controller} />}
        {tab === "list" && <ListView controller={controller} />}
        {tab === "marks" && <Marks controller={controller} />}
      </div>
    </section>
  );
}
