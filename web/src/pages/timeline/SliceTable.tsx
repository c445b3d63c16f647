import { useEffect, useRef } from "preact/hooks";
import { isSample, type Slice } from "../../canvas/model";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { clipped } from "../../format/printable";
import type { TimelineController } from "./controller";

interface Props {
  readonly controller: TimelineController;
  readonly slices: readonly Slice[];
  readonly caption: string;
}

/** Slices as a table; each leads to itself, and the selected one is marked. */
export function SliceTable({ controller, slices, caption }: Props) {
  const selected = controller.selection.details.value?.slice.id;
  const table = useRef<HTMLTableElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another selection is another row
  useEffect(() => {
    table.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [selected]);
  return (
    <div class="timeline-rows">
      <table ref={table}>
        <caption class="dim">{caption}</caption>
        <PlainHead columns={["name", { number: "start" }, { number: "duration" }, "kind", "where"]} />
        <tbody>
          {slices.map((slice) => (
            <tr key={slice.id} aria-current={slice.id === selected ? "true" : undefined}>
              <th scope="row">
                <button type="button" class="link" onClick={() => controller.selection.visit(slice)}>
                  <code>{clipped(slice.name, 300)}</code>
                </button>
              </th>
              <td class="number">
                <Value unit="ns" value={slice.start_ns} />
              </td>
              <td class="number">
                <Value unit="ns" value={isSample(slice) ? null : slice.dur_ns} />
              </td>
              <td>{slice.kind.replaceAll("_", " ")}</td>
              <td>{controller.rows.name(slice.row)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
