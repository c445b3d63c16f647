import { useMemo } from "preact/hooks";
import type { Column } from "../../api/types";
import { Choices } from "../../components/Choices";
import { hatchOf } from "../../components/charts/Patterns";
import { Flame } from "../../components/flame/Flame";
import { findModule, type Module, treeOf } from "../../components/flame/tree";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Table } from "../../components/table/Table";
import { formatCount } from "../../format/units";
import { hrefWith, param, setParams } from "../../state/route";
import { type Compared, sourceOf, useCompared } from "./asked";
import { LEGEND, ratioOf, shiftOf } from "./shift";

/** Rows that are asked for; a tree with more is shown as far as that. */
const MOST = 10_000;

const TREES = [
  ["modules", "modules"],
  ["operator_tree", "operators"],
  ["call_tree", "all calls, down to kernels"],
  ["callers", "all calls, who calls below (bottom-up)"],
] as const;

/** What boxes are, and the table of a tree that has no other on this page. */
const WORDS = {
  modules: { noun: "modules", table: null },
  operator_tree: { noun: "operators", table: "Operators by caller" },
  call_tree: { noun: "calls", table: "Calls by caller" },
  callers: { noun: "calls", table: "Calls with their callers" },
} as const;

/** The tree of calls as it is now, coloured by what has changed. */
export function DiffFlame({ compared }: { compared: Compared }) {
  const hasModules = compared.details.some(({ has }) => has.modules);
  const trees = hasModules ? TREES : TREES.slice(1);
  const what = trees.find(([tree]) => tree === param("tree"))?.[0] ?? (hasModules ? "modules" : "operator_tree");
  const answer = useCompared(compared, what, [["limit", MOST]]);
  const rows = answer.value?.results;
  const roots = useMemo(() => treeOf(rows ?? [], what === "modules" ? "path" : "id"), [rows, what]);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (answer.state === "loading") return <Loading what="Comparing the tree of calls…" />;
  const { columns } = answer.value;
  const hasChange = (name: string) => columns.some((other) => other.name === ratioOf(name.slice("b_".length)));
  const measures = columns.filter(({ name }) => name.startsWith("b_") && hasChange(name));
  const wanted = ["b_device_total_ns", "b_forward_host_total_ns", "b_host_total_ns"];
  const isUsed = (column: Column) => answer.value.results.some((row) => Number(row[column.name] ?? 0) > 0);
  const first = measures.find((column) => wanted.includes(column.name) && isUsed(column)) ?? measures[0];
  const others = measures.filter((column) => column !== first && isUsed(column));
  const options = first ? [first, ...others] : [];
  const column = options.find(({ name }) => name === param("by")) ?? first;
  const root = findModule(roots, param("root") ?? "");
  const total = answer.value.page.total;
  const zoom = (module: Module) =>
    setParams({ root: module.path === root?.path ? (module.parent?.path ?? null) : module.path });
  if (!column || roots.length === 0) return <Empty>Neither run has calls of modules or operators.</Empty>;
  const measure = column.name.slice("b_".length);
  const { noun, table } = WORDS[what];
  return (
    <section aria-label="Tree of calls">
      <h2>Where the change is</h2>
      <p class="dim">
        A box is as wide as what it takes now; its colour and its texture say how that has changed. What only the run
        before has is in the table alone.
      </p>
      {total > MOST && (
        <Empty>
          The first {formatCount(MOST)} of {formatCount(total)} {noun} are drawn; the table below has all.
        </Empty>
      )}
      <div class="choices">
        {trees.length > 1 && <Choices label="Boxes are" name="tree" value={what} options={trees} />}
        {options.length > 1 && (
          <Choices
            label="as wide as their"
            name="by"
            value={column.name}
            options={options.map((option) => [option.name, labelOf(option)])}
          />
        )}
        {root && <a href={hrefWith({ root: null })}>Show all, not only {root.path}</a>}
      </div>
      <Legend />
      <Flame
        roots={root ? [root] : roots}
        column={{ ...column, label: labelOf(column) }}
        title={`${labelOf(column)} of ${noun} now`}
        classOf={(module) => shiftOf(module.row, measure).look}
        textureOf={(module) => {
          const { texture } = shiftOf(module.row, measure);
          return texture && hatchOf(texture);
        }}
        wordsOf={(module) => shiftOf(module.row, measure).words}
        isIcicle={true}
        onChoose={zoom}
      />
      {table && (
        <Table
          key={what}
          analysis="compare"
          title={table}
          prefix="t."
          height={10}
          hidden={["id", "parent"]}
          source={sourceOf(compared, what)}
        />
      )}
    </section>
  );
}

/** What is measured, without the run that it is of. */
const labelOf = (column: Column) => column.label.replace(/^now /, "");

function Legend() {
  return (
    <ul class="legend" aria-label="What colours and textures mean">
      {LEGEND.map(({ look, texture, words }) => (
        <li key={look}>
          <svg class="swatch" width="16" height="16" aria-hidden="true" focusable="false">
            <rect class={look} width="16" height="16" rx="2" />
            {texture && <rect fill={hatchOf(texture)} width="16" height="16" rx="2" />}
          </svg>{" "}
          {words}
        </li>
      ))}
    </ul>
  );
}
