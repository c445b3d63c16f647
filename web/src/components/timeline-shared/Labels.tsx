import type { Placed } from "../../canvas/scene";
import { RULER_PX } from "../../canvas/scene";
import type { Rows } from "./rows";

/** What rows are called, beside the canvas: groups open and close, tracks are pinned. */
export function Labels({ rows }: { rows: Rows }) {
  const { lines, pinnedBottom } = rows.lines.value;
  const isPinned = ({ line }: Placed) => line.isPinned;
  // The further rows of a track have no label; the first one's button reaches into them.
  const labelled = lines.filter(({ line }) => line.label !== "");
  return (
    <div class="timeline-labels">
      <div class="timeline-label-area pinned" style={{ top: `${RULER_PX}px`, height: `${pinnedBottom - RULER_PX}px` }}>
        {labelled.filter(isPinned).map((each) => (
          <Label key={each.line.key} rows={rows} placed={each} above={RULER_PX} />
        ))}
      </div>
      <div class="timeline-label-area" style={{ top: `${pinnedBottom}px`, bottom: "0" }}>
        {labelled
          .filter((each) => !isPinned(each))
          .map((each) => (
            <Label key={each.line.key} rows={rows} placed={each} above={pinnedBottom} />
          ))}
      </div>
    </div>
  );
}

function Label({ rows, placed, above }: { rows: Rows; placed: Placed; above: number }) {
  const { line, top } = placed;
  const isPinned = rows.shown.value.pins.has(line.group);
  const style = {
    transform: `translateY(${top - above}px)`,
    height: `${line.height}px`,
    paddingLeft: `${6 + Math.min(line.indent, 4) * 10}px`,
  };
  return (
    <div class={line.isHeader ? "timeline-label header" : "timeline-label"} style={style} title={line.within}>
      {line.isOpen !== null && (
        <button
          type="button"
          class="caret"
          aria-expanded={line.isOpen}
          aria-label={`${line.isOpen ? "Close" : "Open"} ${line.label}`}
          onClick={() => rows.setOpen(line.group, !line.isOpen)}
        >
          {line.isOpen ? "▾" : "▸"}
        </button>
      )}
      <span class="timeline-name">{line.label}</span>
      {line.label && !line.isHeader && (
        <button
          type="button"
          class="pin"
          aria-pressed={isPinned}
          aria-label={`Pin ${line.label}`}
          title={isPinned ? "Take it from the top" : "Keep it at the top"}
          onClick={() => rows.setPin(line.group, !isPinned)}
        >
          {isPinned ? "★" : "☆"}
        </button>
      )}
    </div>
  );
}
