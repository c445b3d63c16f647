import { useMemo } from "preact/hooks";
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
import { findModule, type Module, treeOf, visible } from "../../components/flame/tree";
import { calledBy, linksOfName, type RowLink } from "../../components/links";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { namesOfNothing } from "../../components/table/choices";
import { Table } from "../../components/table/Table";
import { measureWords } from "../../components/vocabulary";
import { formatCount } from "../../format/units";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, params, selection, setParams, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** Modules that are asked for; a tree with more is shown as far as that. */
const MOST = 10_000;
const NOT_NUMBERS = ["path", "module_class", "name", "depth", "parent"];

/** Whether the values of several modules are one value of all of them. */
const addsUp = ({ name, unit }: Column): boolean =>
  (unit === "ns" || unit === "bytes" || unit === "count") && name !== "depth" && !/_(min|max|mean|p\d+)_?/.test(name);

/** What modules cost, as a tree, as a flame graph and as a table. */
export default function Modules() {
  const path = withQuery(runPath(runId.value, "analyses/modules"), [...selection.value, ["limit", MOST]]);
  const answer = useAnswer<Envelope>(path, detail.value?.version ?? 0);
  const rows = answer.value?.results;
  const columns = answer.value?.columns;
  const areAlikeMerged = param("layers") !== "no";
  const apart = params("apart").join("\n");
  const each = useMemo(() => treeOf(rows ?? []), [rows]);
  const roots = useMemo(() => {
    if (!areAlikeMerged || !rows || !columns) return each;
    const sums = new Set(columns.filter(addsUp).map(({ name }) => name));
    const kindOf = ({ module_class }: Row) => String(module_class);
    return treeOf(mergedAlike(rows, { id: "path", sums, kindOf, isApart: apartIn(apart) }));
  }, [rows, columns, each, areAlikeMerged, apart]);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  if (!answer.value) return <Loading what="Computing modules…" />;
  const leftOut = [...NOT_NUMBERS, ...namesOfNothing(detail.value)];
  const numbers = answer.value.columns.filter((column) => !leftOut.includes(column.name) && column.has_answers);
  // What boxes can show: sums, of which those of the modules inside are a part.
  const isSum = (column: Column) => column.unit !== "ratio" && !/self|_per_s$/.test(column.name);
  const measures = numbers.filter(isSum);
  const first = measures.find(
    (column) => column.name === (detail.value?.has.devices ? "device_total_ns" : "forward_host_total_ns"),
  );
  const options = [...new Set([first, ...measures])].filter((column): column is Column => column !== undefined);
  const measure = options.find((column) => column.name === param("by")) ?? options[0];
  const isIcicle = param("shape") !== "flame";
  // A link may lead to one of several that are alike.
  const root = findModule(roots, param("root") ?? "") ?? findModule(each, param("root") ?? "");
  const shut = new Set(params("shut"));
  const open = new Set(params("open"));
  // What stands at the top shows its children unasked.
  for (const module of root ? [root] : roots) if (!shut.has(module.path)) open.add(module.path);
  const total = answer.value.page.total;
  if (roots.length === 0) return <Empty>No module ran {whereWords(selection.value)}.</Empty>;

  const toggle = (module: Module) => {
    const isRoot = module === root || module.parent === null;
    const [name, known] = isRoot ? ["shut", params("shut")] : ["open", params("open")];
    const next = known.includes(module.path) ? known.filter((path) => path !== module.path) : [...known, module.path];
    setParams({ [name as string]: next }, { replace: true });
  };
  const zoom = (module: Module) =>
    setParams({ root: module.path === root?.path ? (module.parent?.path ?? null) : module.path });
  return (
    <>
      <h1>Modules</h1>
      {total > MOST && (
        <Empty>
          The first {formatCount(MOST)} of {formatCount(total)} modules are drawn; the table below has all.
        </Empty>
      )}
      <div class="choices">
        <Choices
          label="Boxes show"
          name="by"
          value={measure?.name ?? ""}
          options={options.map((column) => [column.name, measureWords(column)])}
        />
        <BoxesBegin isIcicle={isIcicle} />
        <fieldset class="choice kinds">
          <legend>Show</legend>
          <label>
            <input
              type="checkbox"
              checked={areAlikeMerged}
              onChange={(event) => setParams({ layers: event.currentTarget.checked ? null : "no" })}
            />{" "}
            alike layers as one
          </label>
        </fieldset>
        {areAlikeMerged && <TogetherAgain />}
        {root && <a href={hrefWith({ root: null })}>Show all modules, not only {root.path}</a>}
      </div>
      {measure && (
        <Flame
          roots={root ? [root] : roots}
          column={measure}
          title={`${measureWords(measure)} of modules`}
          classOf={(module) => tintOf(module.name)}
          isIcicle={isIcicle}
          onChoose={zoom}
        />
      )}
      <h2>
        Tree <Definition analysis="modules" columns={numbers} />
      </h2>
      <TreeTable
        noun="module"
        kind="module_class"
        columns={numbers}
        modules={visible(root ? [root] : roots, open)}
        open={open}
        onToggle={toggle}
        onChoose={zoom}
        onApart={takeApart}
      />
      <Table
        analysis="modules"
        title="All modules"
        hidden={["depth", "name", "parent"]}
        order={measure?.name ?? ""}
        linksOf={(row) => moduleLinks(row, findModule(each, String(row.path)))}
      />
    </>
  );
}

/** From a module to what it calls, to its calls on the timeline, its operators and kernels; `module` is its place in the tree. */
function moduleLinks(row: Row, module: Module | null): RowLink[] {
  const { name, path } = row;
  if (typeof name !== "string" || typeof path !== "string") return [];
  const pages = detail.value?.has.devices ? (["operators", "kernels"] as const) : (["operators"] as const);
  const links = [
    ...linksOfName("module", name),
    ...pages.map((page) => ({ label: `Its ${page}`, href: calledBy(page, path) })),
  ];
  if (!module || module.children.length === 0) return links;
  const inside = pages.map((page) => ({
    label: `${page === "operators" ? "Operators" : "Kernels"} of modules inside`,
    href: calledBy(page, path, true),
  }));
  return [...links, ...inside];
}
