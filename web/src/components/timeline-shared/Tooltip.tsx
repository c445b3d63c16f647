import { useLayoutEffect, useRef } from "preact/hooks";
import { CLASS_WORDS } from "../../canvas/class_words";
import { counterText, sampleAt } from "../../canvas/draw/counters";
import { isMade } from "../../canvas/item_loader";
import type { CounterPart, SliceDetails } from "../../canvas/model";
import type { Hovered } from "../../canvas/pointer";
import { clipped } from "../../format/printable";
import { formatCount, formatNs } from "../../format/units";
import { useAnswer } from "../../state/answer";
import type { CanvasState } from "./canvas_state";
import { tipPlace } from "./tip_place";

interface Props {
  readonly hovered: Hovered | null;
  /** The values of a counter, as far as they are here. */
  readonly counter: (row: number) => CounterPart | undefined;
  readonly detailsOf: CanvasState["detailsOf"];
}

/** Frames of a stack that there is room for, and characters of each. */
const FRAMES = 12;
const FRAME_LENGTH = 200;

/** What is below the pointer. */
export function Tooltip({ hovered, counter, detailsOf }: Props) {
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
      {hovered.hit ? <HitWords hovered={hovered} detailsOf={detailsOf} /> : text}
    </div>
  );
}

interface HitProps {
  readonly hovered: Hovered;
  readonly detailsOf: CanvasState["detailsOf"];
}

function HitWords({ hovered, detailsOf }: HitProps) {
  const { hit, line } = hovered;
  if (!hit) return null;
  if (line.kind === "samples") return <SampleWords hovered={hovered} detailsOf={detailsOf} />;
  if (line.kind === "sampled_frames") return <FrameWords hovered={hovered} />;
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
  if (hit.isSeveral && isMade(hit.row)) {
    return (
      <>
        <strong>{formatCount(hit.count)} pieces</strong> in {formatNs(Math.round(hit.dur_ns))}
        <div class="timeline-tip-name">{hit.name}</div>
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

/** A sample with its stack, which comes a little later; or how many there are. */
function SampleWords({ hovered: { hit, line }, detailsOf }: HitProps) {
  const asked = hit && !hit.isSeveral && hit.slice !== null ? detailsOf(hit.slice) : null;
  const answer = useAnswer<SliceDetails>(asked?.path ?? null, asked?.version ?? 0);
  if (!hit) return null;
  const stack = answer.state === "ready" ? answer.value.stack : [];
  const where = (
    <div class="dim">
      at {formatNs(Math.round(hit.start_ns))} · {line.within}
    </div>
  );
  if (hit.isSeveral) {
    return (
      <>
        <strong>{formatCount(hit.count)} samples</strong>, the first in{" "}
        <code>{hit.name || "a stack that is not known"}</code>
        {where}
      </>
    );
  }
  return (
    <>
      <strong>sample</strong>
      <ol class="timeline-tip-stack">
        {(stack.length > 0 ? stack.map(({ text }) => text) : [hit.name || "the stack could not be read"])
          .slice(0, FRAMES)
          .map((text, nth) => (
            <li key={nth}>
              <code>{clipped(text, FRAME_LENGTH)}</code>
            </li>
          ))}
      </ol>
      {stack.length > FRAMES && <div class="dim">and {formatCount(stack.length - FRAMES)} callers</div>}
      {where}
    </>
  );
}

/** A frame that samples beside each other have: from when to when. */
function FrameWords({ hovered: { hit, line } }: Pick<HitProps, "hovered">) {
  if (!hit) return null;
  const [from, to] = [hit.start_ns, hit.start_ns + hit.dur_ns].map((ns) => formatNs(Math.round(ns)));
  const blocks = hit.isSeveral && <strong>{formatCount(hit.count)} blocks, among them </strong>;
  return (
    <>
      {blocks}
      <strong class="timeline-tip-name">{hit.name}</strong>
      <div>{hit.dur_ns === 0 ? `in one sample, at ${from}` : `in the samples from ${from} to ${to}`}</div>
      <div class="dim">what ran between samples is not known · {line.within}</div>
    </>
  );
}

function counterWords(part: CounterPart, { line, time_ns }: Hovered): string | null {
  const at = sampleAt(part.time_ns, time_ns);
  const [last, min, max] = [part.last[at], part.min[at], part.max[at]];
  if (last === undefined || min === undefined || max === undefined) return null;
  if (part.end_ns !== undefined && time_ns >= part.end_ns) return null;
  const text = counterText(last, line.unit);
  const beside = part.beside?.values[at] ?? null;
  if (part.beside) {
    const { own, other } = part.beside;
    return beside === null ? `${own}: ${text}` : `${own}: ${text}, ${other}: ${counterText(beside, line.unit)}`;
  }
  return min === max
    ? `${line.label}: ${text}`
    : `${line.label}: ${text}, between ${counterText(min, line.unit)} and ${counterText(max, line.unit)}`;
}
