import { useLayoutEffect, useRef } from "preact/hooks";
import { CLASS_WORDS } from "../../canvas/class_words";
import { counterText, sampleAt } from "../../canvas/draw/counters";
import type { CounterPart } from "../../canvas/model";
import type { Hovered } from "../../canvas/pointer";
import { formatCount, formatNs } from "../../format/units";
import { tipPlace } from "./tip_place";

interface Props {
  readonly hovered: Hovered | null;
  /** The values of a counter, as far as they are here. */
  readonly counter: (row: number) => CounterPart | undefined;
}

/** What is below the pointer. */
export function Tooltip({ hovered, counter }: Props) {
  const tip = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = tip.current;
    const around = element?.offsetParent;
    if (!element || !around || !hovered) return;
    // It takes as much room as it likes, wherever it stood before.
    element.style.left = "0";
    const size = { width: element.offsetWidth, height: element.offsetHeight };
    const { left, top } = tipPlace(hovered, size, { width: around.clientWidth, height: around.clientHeight });
    element.style.left = `${left}px`;
    element.style.top = `${top}px`;
  });
  if (!hovered) return null;
  const part = hovered.line.kind === "counter" && hovered.line.row !== null ? counter(hovered.line.row) : null;
  const text = part ? counterWords(part, hovered) : null;
  if (!hovered.hit && !text) return null;
  return (
    <div class="timeline-tip" ref={tip} aria-hidden="true">
      {hovered.hit ? <HitWords hovered={hovered} /> : text}
    </div>
  );
}

function HitWords({ hovered }: { hovered: Hovered }) {
  const { hit, line } = hovered;
  if (!hit) return null;
  if (line.kind === "density") {
    const words = line.isHeader || !line.label ? "busy on average" : "busy";
    return (
      <>
        <strong>{line.label}</strong>
        <div>
          {words} {formatNs(Math.round(hit.busy_ns))} of {formatNs(Math.round(hit.dur_ns))}
        </div>
      </>
    );
  }
  if (hit.isSeveral) {
    return (
      <>
        <strong>{formatCount(hit.count)} slices</strong> in {formatNs(Math.round(hit.dur_ns))}
        <div>busy {formatNs(Math.round(hit.busy_ns))}</div>
        <div>
          the longest is <code>{hit.name}</code>
        </div>
      </>
    );
  }
  return (
    <>
      <strong class="timeline-tip-name">{hit.name}</strong>
      <div>
        {hit.isUnfinished ? "not finished after " : ""}
        {formatNs(Math.round(hit.dur_ns))} · {CLASS_WORDS[hit.class] ?? "other"}
      </div>
      <div class="dim">
        starts at {formatNs(Math.round(hit.start_ns))} · {line.within}
      </div>
    </>
  );
}

function counterWords(part: CounterPart, { line, time_ns }: Hovered): string | null {
  const at = sampleAt(part.time_ns, time_ns);
  const [last, min, max] = [part.last[at], part.min[at], part.max[at]];
  if (last === undefined || min === undefined || max === undefined) return null;
  const text = counterText(last, line.unit);
  return min === max
    ? `${line.label}: ${text}`
    : `${line.label}: ${text}, between ${counterText(min, line.unit)} and ${counterText(max, line.unit)}`;
}
