import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Definition } from "../../components/Definition";
import { memoriesOf, memoryWords } from "../../components/memories";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { useAnswer } from "../../state/answer";
import { hrefOf, selection } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** Memories that are told; all are on their page. */
const SHOWN = 8;

/** The peak of each device's memory, and of the host's. */
export function Memory() {
  const hasMemory = detail.value?.has.memory === true;
  const path = withQuery(runPath(runId.value, "analyses/memory_summary"), [
    ...selection.value,
    ["sort", "peak_bytes"],
    ["limit", SHOWN],
  ]);
  const answer = useAnswer<Envelope>(hasMemory ? path : null, detail.value?.version ?? 0);
  const rows = answer.value?.results ?? [];
  if (rows.length === 0) return null;
  const hasRanks = (detail.value?.run.ranks.length ?? 1) > 1;
  return (
    <section aria-label="Memory">
      <h2>
        <a href={hrefOf("memory")}>Memory</a> <Definition analysis="memory_summary" />
      </h2>
      <table class="plain" aria-label="Peaks of memory">
        <PlainHead columns={["Memory of", { number: "Peak" }, { number: "Of capacity" }]} />
        <tbody>
          {memoriesOf(rows).map((memory, at) => (
            <tr key={memory.id}>
              <th scope="row">
                <a href={hrefOf("memory", { memory: memory.id })}>{memoryWords(memory, hasRanks)}</a>
              </th>
              <td class="number">
                <Value unit="bytes" value={rows[at]?.peak_bytes} />
              </td>
              <td class="number">
                <Value unit="ratio" value={rows[at]?.peak_ratio} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
