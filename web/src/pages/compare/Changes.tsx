import type { Row } from "../../api/types";
import { linkedName, nameCondition } from "../../components/links";
import { formatCondition } from "../../components/table/choices";
import type { RowLink } from "../../components/table/links";
import { Table } from "../../components/table/Table";
import { hrefOf, hrefWith } from "../../state/route";
import { keyOf } from "../../state/runs";
import { type Compared, sourceOf } from "./asked";

/** Everything that a step spends time on, before and now; the largest changes first. */
export function Changes({ compared }: { compared: Compared }) {
  const { details } = compared;
  const hasDevices = details.some(({ has }) => has.devices);
  const shared = { analysis: "compare", height: 12, words: WORDS };
  const unasked = [
    "a_count_per_step",
    "b_count_per_step",
    ...(hasDevices ? [] : ofMeasures(["device_self", "device_total"])),
  ];
  return (
    <>
      <Table
        {...shared}
        title="Operators"
        prefix="o."
        source={sourceOf(compared, "operators")}
        hidden={[...unasked, ...ofMeasures(["host_total", "device_total"])]}
        linksOf={(row) => [...spread(row, "op"), ...onPages(row, compared, "operators", filtered)]}
      />
      {hasDevices && (
        <Table
          {...shared}
          title="Kernels"
          prefix="k."
          source={sourceOf(compared, "kernels")}
          linksOf={(row) => [...spread(row, "kernel"), ...onPages(row, compared, "kernels", filtered)]}
        />
      )}
      {details.some(({ has }) => has.modules) && (
        <Table
          {...shared}
          title="Modules"
          prefix="m."
          source={sourceOf(compared, "modules")}
          hidden={["name", "parent", ...unasked]}
          linksOf={(row) => onPages(row, compared, "modules", (row) => ({ root: String(row.path) }))}
        />
      )}
    </>
  );
}

/** Which run a row is of. */
const WORDS = { runs: { a: "only before", b: "only now" } };

/** The columns of measures. */
const ofMeasures = (names: readonly string[]) =>
  names.flatMap((name) => [`a_${name}_ns`, `b_${name}_ns`, `change_${name}_ns`, `change_${name}_ratio`]);

const filtered = (row: Row) => ({ where: formatCondition(nameCondition("name", String(row.name))) });

function spread(row: Row, name: "op" | "kernel"): RowLink[] {
  if (typeof row.name !== "string") return [];
  const other = name === "op" ? "kernel" : "op";
  return [{ label: "How long its calls take", href: hrefWith({ [name]: linkedName(row.name), [other]: null }) }];
}

/** The same row on the page of each run that has it. */
export function onPages(
  row: Row,
  { sides, names }: Compared,
  page: string,
  changes: (row: Row) => Record<string, string>,
): RowLink[] {
  const links = (["a", "b"] as const).map((side, at) => {
    const { run, rank } = sides[side];
    const part = { run: keyOf(run), rank: rank === null ? null : String(rank), step: null, window: null };
    return { side, label: `In ${names[at]}`, href: hrefOf(page, { ...part, ...changes(row) }) };
  });
  return links.filter(({ side }) => row.runs === "both" || row.runs === side);
}
