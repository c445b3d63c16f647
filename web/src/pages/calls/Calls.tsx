import { useMemo, useState } from "preact/hooks";
import { runPath, withQuery } from "../../api/paths";
import type { Column, Envelope, Row } from "../../api/types";
import { Choices } from "../../components/Choices";
import { Definition } from "../../components/Definition";
import { apartIn, TogetherAgain, takeApart } from "../../components/flame/Apart";
import { mergedAlike } from "../../components/flame/alike";
import { BoxesBegin } from "../../components/flame/BoxesBegin";
import { Flame } from "../../components/flame/Flame";
import { TreeTable } from "../../components/flame/TreeTable";
import { tintOf } from "../../components/flame/tint";
import { addressKey, findIn, type Module, treeOf, visible } from "../../components/flame/tree";
import { linksOfName, nameCondition } from "../../components/links";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { formatCondition } from "../../components/table/choices";
import { measureWords } from "../../components/vocabulary";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, params, selection, setParams, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { SUMS, shaped } from "./shape";
import { threadsOf, threadWords } from "./threads";

/** Rows that are asked for, those with the most time; a tree with more is shown as far as that. */
const MOST = 10_000;

const DIRECTIONS = [
  ["callees", "what is called (top-down)"],
  ["callers", "who calls (bottom-up)"],
] as const;
const KINDS = [
  ["python", "Python"],
  ["module", "modules"],
  ["label", "labels"],
  ["op", "operators"],
  ["api", "calls of the device's API"],
] as const;
const MERGED = [
  ["layers", "alike layers as one"],
  ["recursion", "recursion as one"],
] as const;
const ADDED: ReadonlySet<string> = new Set(SUMS);
const kindOfModule = ({ kind }: Row) => (kind === "module" ? "module" : null);

const MEASURES = ["device_total_ns", "host_total_ns", "allocated_bytes", "flops"];
const NOT_NUMBERS = ["id", "parent", "depth", "name", "kind"];

/** Where time, memory and operations go, by who calls whom: as boxes, and as a tree. */
export default function Calls() {
  const direction = DIRECTIONS.find(([name]) => name === param("direction"))?.[0] ?? "callees";
  const thread = param("thread");
  const ofThread = thread === undefined ? null : formatCondition(nameCondition("thread", thread));
  const path = withQuery(runPath(runId.value, "analyses/call_tree"), [
    ...selection.value,
    ["group_by", ofThread ? `${direction}_by_thread` : direction === "callees" ? null : direction],
    ...(ofThread ? [["where", ofThread] as const] : []),
    ["limit", MOST],
  ]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  const rows = answer.value?.results;
  const [hidden, search] = [params("without").join(), param("find") ?? ""];
  const apart = params("apart").join("\n");
  const [isRecursionMerged, areLayersMerged] = [param("recursion") !== "no", param("layers") !== "no"];
  const roots = useMemo(() => {
    const shape = { hidden: new Set(hidden.split(",")), isRecursionMerged, search };
    const known = shaped(rows ?? [], shape);
    if (!areLayersMerged) return treeOf(known, "id");
    const isApart = apartIn(apart);
    return treeOf(mergedAlike(known, { id: "id", sums: ADDED, kindOf: kindOfModule, isApart }), "id");
  }, [rows, hidden, isRecursionMerged, areLayersMerged, search, apart]);
  const isIcicle = param("shape") !== "flame";
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value || !rows) return <Loading what="Building the tree of calls…" />;
  if (rows.length === 0) return <Nothing thread={thread} />;
  const columns = answer.value.columns.filter(({ name }) => !NOT_NUMBERS.includes(name));
  const isUsed = ({ name }: Column) => rows.some((row) => Number(row[name] ?? 0) > 0);
  const measures = MEASURES.map((name) => columns.find((column) => column.name === name)).filter(
    (column): column is Column => column !== undefined && isUsed(column),
  );
  const measure = measures.find(({ name }) => name === param("by")) ?? measures[0];
  if (!measure) return <Nothing thread={thread} />;
  const byMeasure = sorted(roots, measure.name);
  const key = param("root");
  const root = key === undefined ? null : findIn(byMeasure, (module) => addressKey(module.path) === key);
  const shown = root ? [root] : byMeasure;
  const unasked = hottest(shown, measure.name);
  const open = new Set([...unasked, ...toggled].filter((path) => unasked.has(path) !== toggled.has(path)));
  const toggle = (module: Module) => {
    const next = new Set(toggled);
    if (!next.delete(module.path)) next.add(module.path);
    setToggled(next);
  };
  const focus = (module: Module) => {
    const to = module.path === root?.path ? module.parent : module;
    setParams({ root: to ? addressKey(to.path) : null });
  };
  const { matching } = answer.value.page;
  return (
    <>
      <h1>
        Call tree <Definition analysis="call_tree" columns={columns} />
      </h1>
      <p class="dim">
        Click a box or a row to make it the whole; click it again to go back to what is around it.
        {matching > rows.length &&
          ` The ${formatCount(rows.length)} places with the most time of ${formatCount(matching)} are shown.`}
      </p>
      <div class="choices">
        <Choices label="Below a row is" name="direction" value={direction} options={DIRECTIONS} />
        <Choices
          label="Wide as"
          name="by"
          value={measure.name}
          options={[measure, ...measures.filter((other) => other !== measure)].map(
            (column) => [column.name, measureWords(column)] as const,
          )}
        />
        <Threads thread={thread} />
        <BoxesBegin isIcicle={isIcicle} />
        <label class="choice">
          Find{" "}
          <input
            type="search"
            value={search}
            onInput={(event) => setParams({ find: event.currentTarget.value || null }, { replace: true })}
          />
        </label>
        <fieldset class="choice kinds">
          <legend>Show</legend>
          {KINDS.map(([kind, words]) => (
            <label key={kind}>
              <input
                type="checkbox"
                checked={!params("without").includes(kind)}
                onChange={(event) => {
                  const others = params("without").filter((other) => other !== kind);
                  setParams({ without: event.currentTarget.checked ? others : [...others, kind] });
                }}
              />{" "}
              {words}
            </label>
          ))}
          {MERGED.map(([name, words]) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={param(name) !== "no"}
                onChange={(event) => setParams({ [name]: event.currentTarget.checked ? null : "no" })}
              />{" "}
              {words}
            </label>
          ))}
        </fieldset>
        {areLayersMerged && <TogetherAgain />}
        {root && (
          <>
            <a href={hrefWith({ root: null })}>Show everything</a>
            {callLinks(root).map(({ label, href }) => (
              <a key={label} href={href}>
                {label}
              </a>
            ))}
          </>
        )}
      </div>
      {shown.length === 0 ? (
        <Empty>No call has “{search}” in its name.</Empty>
      ) : (
        <>
          <Flame
            roots={shown}
            column={measure}
            title={`${measureWords(measure)} by calls`}
            classOf={(module) => tintOf(module.name)}
            isIcicle={isIcicle}
            onChoose={focus}
          />
          <TreeTable
            noun="call"
            kind="kind"
            columns={columns.filter(isUsed)}
            modules={visible(shown, open)}
            open={open}
            onToggle={toggle}
            onChoose={focus}
            onApart={takeApart}
          />
        </>
      )}
    </>
  );
}

/** Where the call leads that was chosen. One that stands for several that are alike has a name of its own, which no call has. */
const callLinks = ({ name, row }: Module) => (typeof row.alike === "string" ? [] : linksOfName(String(row.kind), name));

/** Whose calls are shown: those of all threads, or of one. The one with the most time comes first. */
function Threads({ thread }: { thread: string | undefined }) {
  const path = withQuery(runPath(runId.value, "analyses/call_tree"), [
    ...selection.value,
    ["group_by", "callees_by_thread"],
    ["where", "depth:eq:0"],
    ["limit", MOST],
  ]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  const rows = answer.value?.results;
  const threads = useMemo(() => threadsOf(rows ?? [], thread), [rows, thread]);
  if (threads.length < 2 && thread === undefined) return null;
  return <Choices label="Thread" name="thread" value={thread ?? ""} options={[["", "all threads"], ...threads]} />;
}

function Nothing({ thread }: { thread: string | undefined }) {
  return (
    <>
      <h1>Call tree</h1>
      <Empty>
        Nothing was called {thread !== undefined && `on ${threadWords(thread)} `}
        {whereWords(selection.value)}.
      </Empty>
      {thread !== undefined && <a href={hrefWith({ thread: null })}>Show all threads</a>}
    </>
  );
}

/** The trees with the largest values first, on each level. */
function sorted(modules: readonly Module[], column: string): Module[] {
  const value = (module: Module) => Number(module.row[column] ?? 0);
  const order = (list: Module[]) => list.sort((one, other) => value(other) - value(one));
  const waiting = [...modules];
  for (let module = waiting.pop(); module; module = waiting.pop()) {
    order(module.children);
    waiting.push(...module.children);
  }
  return order([...modules]);
}

/** The paths that are open unasked: from each of the first roots down to where no single call has most of the time. */
function hottest(roots: readonly Module[], column: string): Set<string> {
  const open = new Set<string>();
  const value = (module: Module) => Number(module.row[column] ?? 0);
  for (let at = roots[0]; at && at.children.length > 0; ) {
    open.add(at.path);
    const first = at.children[0];
    at = first && value(first) > 0.5 * value(at) ? first : undefined;
  }
  return open;
}
