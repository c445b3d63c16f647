import { Figure } from "../../components/charts/Figure";
import { Overlaid } from "../../components/charts/Overlaid";
import { pairsOf } from "../../components/charts/ranges";
import { nameCondition } from "../../components/links";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { formatCondition } from "../../components/table/choices";
import { clipped } from "../../format/printable";
import { param } from "../../state/route";
import { type Compared, useCompared } from "./asked";

/** How long the calls of one operator, or the runs of one kernel, take: of the chosen one, else of what takes most. */
export function Durations({ compared }: { compared: Compared }) {
  const [kernel, op] = [param("kernel"), param("op")];
  const hasDevices = compared.details.some(({ has }) => has.devices);
  const isKernel = op === undefined && (kernel !== undefined || hasDevices);
  const what = isKernel ? "kernel_durations" : "operator_durations";
  const picked = isKernel ? kernel : op;
  const first = useCompared(compared, picked === undefined ? what : null, [["limit", 1]]);
  const row = picked === undefined ? first.value?.results[0] : undefined;
  const name = picked ?? (row ? String(row.name) : null);
  const asked = [["where", formatCondition(nameCondition("name", name ?? ""))] as const, ["limit", 10_000] as const];
  const answer = useCompared(compared, name === null ? null : what, asked);
  const failed = [first, answer].find((answer) => answer.state === "failed");
  if (failed?.state === "failed") return <ErrorNotice error={failed.error} />;
  if (name === null) return first.state === "ready" ? null : <Loading />;
  const title = isKernel ? "Runs of a kernel" : "Calls of an operator";
  const ranges = pairsOf(answer.value?.results ?? []);
  return (
    <section aria-label="Durations">
      <h2>{title}</h2>
      <p class="kernel-name">
        <code>{clipped(name, 1_000)}</code>
      </p>
      <p class="dim">Open a row of the tables above to choose another one.</p>
      {answer.state === "loading" && <Loading />}
      {answer.state === "ready" && ranges.length === 0 && <Empty>It runs in neither.</Empty>}
      {ranges.length > 0 && (
        <Figure name="durations" title={<span>{isKernel ? "Runs" : "Calls"} by duration</span>}>
          <Overlaid
            label={`${isKernel ? "Runs" : "Calls"} of ${clipped(name, 300)} by duration`}
            ranges={ranges}
            names={compared.names}
            nouns={isKernel ? ["run", "runs"] : ["call", "calls"]}
          />
        </Figure>
      )}
    </section>
  );
}
