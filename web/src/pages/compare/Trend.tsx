import { useEffect, useState } from "preact/hooks";
import { ask, bodyOf } from "../../api/client";
import { withQuery } from "../../api/paths";
import type { Envelope, Num, RunSummary } from "../../api/types";
import { Figure } from "../../components/charts/Figure";
import { Legend } from "../../components/charts/Legend";
import { StackedColumns } from "../../components/charts/StackedColumns";
import { partsIn } from "../../components/charts/steps";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { Words } from "../../components/Words";
import { formatCount } from "../../format/units";
import { hrefWith, param, setParams } from "../../state/route";
import { keyOf, runs } from "../../state/runs";
import type { Compared } from "./asked";
import { Milliseconds } from "./Milliseconds";
import { type MeanOfRun, meanOf, type TrendRow, trendColumns, trendOf } from "./trend";

/** At most this number of runs is read without being asked for. */
const FEW = 8;

/** The mean steps of all runs, where there are more than two: in the order in which they were opened. */
export function Trend({ compared }: { compared: Compared }) {
  const list = runs.value ?? [];
  if (list.length < 3) return null;
  const isShown = list.length <= FEW || param("trend") === "all";
  return (
    <section aria-label="All runs">
      <h2>The mean step of all {formatCount(list.length)} runs</h2>
      {isShown ? (
        <TrendOf list={list} compared={compared} />
      ) : (
        <p>
          <a href={hrefWith({ trend: "all" })}>Read all {formatCount(list.length)} runs, and show their trend</a>
        </p>
      )}
    </section>
  );
}

function TrendOf({ list, compared }: { list: readonly RunSummary[]; compared: Compared }) {
  const means = useMeans(list);
  const rows = trendOf(list, means);
  const chosen = [compared.sides.a.run, compared.sides.b.run].map(keyOf);
  const columns = trendColumns(rows, chosen);
  const waiting = rows.filter(({ mean }) => mean.state === "loading").length;
  // Steps and windows are of one run; the timelines' too.
  const choose = (key: string) =>
    setParams({ b: key, "b-rank": null, "b-step": null, step: null, window: null, view: null });
  return (
    <>
      <p class="dim" role="status">
        {waiting > 0
          ? `Reading: ${formatCount(waiting)} of ${formatCount(rows.length)} runs are still missing.`
          : "All ranks of each run, in the order in which runs were opened. Click a column to compare with that run."}
      </p>
      {columns.length > 1 && (
        <Figure name="mean_steps" title={<Legend parts={partsIn(columns)} />}>
          <StackedColumns label="Mean steps of all runs" columns={columns} onChoose={({ key }) => choose(key)} />
        </Figure>
      )}
      <div class="table-scroll step-parts">
        <table aria-label="Mean steps of all runs">
          <PlainHead
            columns={[
              "run",
              { number: "mean step, ms" },
              { number: "change, ms", title: "Less the mean step of the run before" },
              { number: "change" },
            ]}
          />
          <tbody>
            {rows.map((row, at) => (
              <tr key={row.key} aria-current={chosen.includes(row.key) ? "true" : undefined}>
                <th scope="row" title={row.name}>
                  {at + 1}.{" "}
                  <a
                    href={hrefWith({
                      b: row.key,
                      "b-rank": null,
                      "b-step": null,
                      step: null,
                      window: null,
                      view: null,
                    })}
                  >
                    {row.name}
                  </a>
                </th>
                <Numbers row={row} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Numbers({ row: { mean, change_ns, change_ratio } }: { row: TrendRow }) {
  if (mean.state !== "ready") {
    return (
      <td colSpan={3} class="dim">
        {mean.state === "failed" ? (
          <Words text={mean.error.what} />
        ) : mean.state === "none" ? (
          "no complete step"
        ) : (
          "reading…"
        )}
      </td>
    );
  }
  return (
    <>
      <td class="number">
        <Milliseconds ns={mean.total_ns} />
      </td>
      <td class="number">{change_ns === null ? "–" : <Milliseconds ns={change_ns as Num} isChange />}</td>
      <td class="number">
        <Value unit="ratio" value={change_ratio} />
      </td>
    </>
  );
}

/** Asks for the mean step of one run after the other: each may have to be read first. */
function useMeans(list: readonly RunSummary[]): ReadonlyMap<number, MeanOfRun> {
  const [means, setMeans] = useState<ReadonlyMap<number, MeanOfRun>>(new Map());
  const key = JSON.stringify(list.map(({ id, key }) => [id, key]));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has the runs that are asked for
  useEffect(() => {
    const abort = new AbortController();
    const askAll = async () => {
      for (const { id } of list) {
        const mean = await askMean(id, abort.signal);
        if (abort.signal.aborted) return;
        setMeans((known) => new Map(known).set(id, mean));
      }
    };
    setMeans(new Map());
    void askAll();
    return () => abort.abort();
  }, [key]);
  return means;
}

async function askMean(run: number, signal: AbortSignal): Promise<MeanOfRun> {
  const what = [
    ["what", "step_breakdown"],
    ["where", "row:ne:part"],
  ] as const;
  try {
    const answer = await ask<Envelope>(withQuery("api/compare", [["a", run], ["b", run], ...what]), signal);
    return meanOf(answer.results);
  } catch (error) {
    return { state: "failed", error: bodyOf(error) };
  }
}
