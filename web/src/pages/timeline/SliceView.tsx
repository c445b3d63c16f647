import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { classWords } from "../../canvas/class_words";
import { isSample, type PartOfRank, type Slice, type SliceDetails, type SourceText } from "../../canvas/model";
import { CopyButton } from "../../components/CopyButton";
import { modulesBelow, pathOfModules, searchText, sourceLine } from "../../components/links";
import { Empty } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import type { Requests } from "../../components/timeline-shared/requests";
import { Value } from "../../components/Value";
import { clipped } from "../../format/printable";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { hrefOf } from "../../state/route";
import { findPage } from "../registry";
import type { TimelineController } from "./controller";

/** Slices of one list that are shown at first. */
const SHOWN = 20;
/** Characters that are shown of a name, in a title and in lists, and of an argument. What is copied is whole. */
const TITLE_LENGTH = 1_000;
const NAME_LENGTH = 300;
const ARG_LENGTH = 5_000;

/** Everything known of the selected slice. */
export function SliceView({ controller }: { controller: TimelineController }) {
  const details = controller.selection.details.value;
  if (!details) {
    return (
      <Empty>
        Click a slice to see its details. <kbd>?</kbd> lists all keys.
      </Empty>
    );
  }
  return (
    <div class="timeline-details">
      {controller.rows.isHidden(details.slice.row) && (
        <p>
          The filter of tracks hides its track.{" "}
          <button type="button" class="link" onClick={() => controller.filterTracks("")}>
            Show all tracks
          </button>
        </p>
      )}
      <Facts controller={controller} details={details} />
      <OnAllRanks key={details.slice.id} controller={controller} />
      <Around controller={controller} details={details} />
      <Stack details={details} />
      {!isSample(details.slice) && <AsRecorded requests={controller.requests} slice={details.slice.id} />}
    </div>
  );
}

/** What the recorded file has of a slice; it may come later than everything else. */
function AsRecorded({ requests, slice }: { requests: Requests; slice: number }) {
  const answer = useAnswer<SourceText>(requests.sourceTextPath(slice), requests.version);
  // While it loads, the element stays as the user has it: open or closed.
  const text = answer.value?.source_text ?? null;
  if (text === null) return null;
  return (
    <details class="timeline-source">
      <summary>As the recorded file has it</summary>
      <pre>{answer.state === "ready" ? text : "…"}</pre>
    </details>
  );
}

function Facts({ controller, details }: { controller: TimelineController; details: SliceDetails }) {
  const { slice } = details;
  return (
    <div>
      <h2 class="timeline-title">
        {isSample(slice) && "Sample: "}
        <code>{clipped(slice.name || "the stack could not be read", TITLE_LENGTH)}</code>{" "}
        <CopyButton text={() => slice.name}>Copy</CopyButton>
      </h2>
      <dl class="timeline-facts">
        <Fact name="kind">
          {isSample(slice)
            ? "sample: what the thread ran at this moment"
            : `${slice.kind} · ${classWords(slice.class)}`}
        </Fact>
        <Fact name="start">
          <Value unit="ns" value={slice.start_ns} />
        </Fact>
        {!isSample(slice) && (
          <>
            <Fact name={slice.is_unfinished ? "duration (not finished)" : "duration"}>
              <Value unit="ns" value={slice.dur_ns} />
            </Fact>
            <Fact name="self time">
              <Value unit="ns" value={details.self_ns} />
            </Fact>
            <Fact name="slices inside it">
              <Value unit="count" value={details.children} />
            </Fact>
          </>
        )}
        <Fact name="step">
          <Value unit="plain" value={details.step === null ? null : String(details.step)} />
        </Fact>
        <Fact name="where">{controller.rows.name(slice.row) || slice.track || "–"}</Fact>
        {details.args.map(([key, value], nth) => (
          <Fact key={`${nth} ${key}`} name={key}>
            <span class="timeline-arg">{clipped(value, ARG_LENGTH)}</span>
          </Fact>
        ))}
      </dl>
      <p>
        {isSample(slice) ? (
          <a href={hrefOf("tables", { analysis: "host_lines", q: searchText(slice.name) })}>
            All samples of this line in the table
          </a>
        ) : (
          <a href={hrefOf(tableOf(slice), { q: searchText(slice.name) })}>All of this name in the table</a>
        )}
      </p>
    </div>
  );
}

/** The page whose table has slices like this one. */
function tableOf(slice: Slice): string {
  return ["compute", "communication", "copy"].includes(slice.class) && findPage("kernels") ? "kernels" : "operators";
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The collective that the slice belongs to, rank by rank. */
function OnAllRanks({ controller }: { controller: TimelineController }) {
  const [isWhole, setWhole] = useState(false);
  const together = controller.selection.together.value;
  if (!together) return null;
  const { parts, last } = together;
  const ofLast = parts.find(({ rank }) => rank === last);
  const link = ({ rank, slice }: PartOfRank) => (
    <button type="button" class="link" onClick={() => controller.selection.visit(slice)}>
      Rank {rank}
    </button>
  );
  return (
    <div>
      <h3>On {formatCount(parts.length)} ranks</h3>
      {ofLast && <p>{link(ofLast)} came last.</p>}
      <table class="plain" aria-label="On each rank">
        <PlainHead columns={["Rank", { number: "Start" }, { number: "Duration" }]} />
        <tbody>
          {(isWhole ? parts : parts.slice(0, SHOWN)).map((part) => (
            <tr key={`${part.rank} ${part.slice.id}`}>
              <td>{link(part)}</td>
              <td class="number">
                <Value unit="ns" value={part.start_ns} />
              </td>
              <td class="number">{part.is_unfinished ? "not finished" : <Value unit="ns" value={part.dur_ns} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {parts.length > SHOWN && !isWhole && (
        <button type="button" onClick={() => setWhole(true)}>
          All {formatCount(parts.length)}
        </button>
      )}
    </div>
  );
}

function Around({ controller, details }: { controller: TimelineController; details: SliceDetails }) {
  const joined = (by: string, to?: string) =>
    details.flows
      .filter(({ kind, direction }) => kind === by && (to ?? direction) === direction)
      .map(({ slice }) => slice);
  const one = (slice: Slice | null) => (slice ? [slice] : []);
  return (
    <div>
      <Slices controller={controller} title="Operator" slices={one(details.op)} />
      <Slices controller={controller} title="Launched by" slices={one(details.launch)} />
      <Slices controller={controller} title="Launches" slices={details.launched} />
      <Slices controller={controller} title="Forward and backward" slices={joined("forward_backward")} />
      <Slices controller={controller} title="Batch taken by" slices={joined("batch", "out")} />
      <Slices controller={controller} title="Batch made by" slices={joined("batch", "in")} />
      <Slices controller={controller} title="Inside of" slices={details.ancestors} />
      {details.module.length > 0 && (
        <>
          <h3>Module</h3>
          <ol class="timeline-list">
            {details.module.map((name, nth) => (
              <li key={`${nth} ${name}`}>
                <a href={modulesBelow(pathOfModules(details.module.slice(nth)))}>
                  <code>{name}</code>
                </a>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  );
}

function Slices({
  controller,
  title,
  slices,
}: {
  controller: TimelineController;
  title: string;
  slices: readonly Slice[];
}) {
  if (slices.length === 0) return null;
  return (
    <>
      <h3>
        {title}
        {slices.length > 1 && <span class="dim"> {formatCount(slices.length)}</span>}
      </h3>
      <ul class="timeline-list">
        {slices.slice(0, SHOWN).map((slice) => (
          <li key={slice.id}>
            <button type="button" class="link" onClick={() => controller.selection.visit(slice)}>
              <code>{clipped(slice.name, NAME_LENGTH)}</code>
            </button>{" "}
            <Value unit="ns" value={slice.dur_ns} />
          </li>
        ))}
        {slices.length > SHOWN && <li class="dim">and {formatCount(slices.length - SHOWN)} more</li>}
      </ul>
    </>
  );
}

function Stack({ details }: { details: SliceDetails }) {
  if (details.stack.length === 0) return null;
  const hasSource = findPage("source") !== undefined;
  return (
    <div>
      <h3>{isSample(details.slice) ? "Stack, innermost first" : "Called from"}</h3>
      <ol class="timeline-list">
        {details.stack.map((frame, nth) => (
          <li key={`${nth} ${frame.text}`}>
            {hasSource && frame.file ? (
              <a href={sourceLine(frame.file, frame.line)}>
                <code>{frame.text}</code>
              </a>
            ) : (
              <code>{frame.text}</code>
            )}
          </li>
        ))}
      </ol>
    </div>
  );
}
