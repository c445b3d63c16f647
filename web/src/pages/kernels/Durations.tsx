import { runPath, withQuery } from "../../api/paths";
import type { Envelope } from "../../api/types";
import { Figure } from "../../components/charts/Figure";
import { Histogram } from "../../components/charts/Histogram";
import { rangesOf } from "../../components/charts/ranges";
import { Definition } from "../../components/Definition";
import { nameCondition } from "../../components/links";
import { ErrorNotice, Loading } from "../../components/Notice";
import { formatCondition } from "../../components/table/choices";
import { clipped } from "../../format/printable";
import { useAnswer } from "../../state/answer";
import { param, selection, whereWords } from "../../state/route";
import { detail, runId } from "../../state/runs";

/** How long the runs of one kernel took: the one that was chosen, else the one with the longest total. */
export function Durations() {
  const version = detail.value?.version ?? 0;
  const path = runPath(runId.value, "analyses/kernel_durations");
  const kernel = param("kernel");
  const first = useAnswer<Envelope>(kernel ? null : withQuery(path, [...selection.value, ["limit", 1]]), version);
  const row = first.value?.results[0];
  const name = kernel ?? (row ? String(row.name) : null);
  const asked = [
    ...selection.value,
    ["where", formatCondition(nameCondition("name", name ?? ""))],
    ["limit", 10_000],
  ] as const;
  const answer = useAnswer<Envelope>(name === null ? null : withQuery(path, asked), version);
  const failed = [first, answer].find((answer) => answer.state === "failed");
  if (failed?.state === "failed") return <ErrorNotice error={failed.error} />;
  if (name === null) return first.state === "ready" ? null : <Loading />;
  const rows = answer.value?.results ?? [];
  const kinds = [...new Set(rows.map((row) => String(row.kind)))];
  return (
    <section aria-label="Durations">
      <h2>
        How long runs take <Definition analysis="kernel_durations" />
      </h2>
      <p class="kernel-name">
        <code>{clipped(name, 1_000)}</code>
      </p>
      {answer.state === "loading" && <Loading />}
      {answer.state === "ready" && rows.length === 0 && (
        <p class="dim">It does not run {whereWords(selection.value)}.</p>
      )}
      {kinds.map((kind) => (
        <Figure key={kind} name="durations" title={<span>Runs by duration{kinds.length > 1 && `, ${kind}`}</span>}>
          <Histogram
            label={`Runs of ${clipped(name, 300)} by duration`}
            ranges={rangesOf(rows.filter((row) => row.kind === kind))}
            colour={kind === "communication" ? "communication" : "compute"}
          />
        </Figure>
      ))}
    </section>
  );
}
