import type { Row } from "../../api/types";
import { Figure } from "../../components/charts/Figure";
import { Overlaid } from "../../components/charts/Overlaid";
import type { PairRange } from "../../components/charts/ranges";
import { ErrorNotice, Loading } from "../../components/Notice";
import { PlainHead } from "../../components/table/PlainHead";
import { Value } from "../../components/Value";
import { type Compared, useCompared } from "./asked";

const COLUMNS = [
  ["steps", "steps", "count"],
  ["median_ns", "median", "ns"],
  ["mean_ns", "mean", "ns"],
  ["p95_ns", "95th percentile", "ns"],
] as const;

/** Whether steps take longer, in a sentence. */
export function Verdict({ compared }: { compared: Compared }) {
  // Why it failed is said where the numbers behind it would be.
  const says = useCompared(compared, "steps").value?.results[0]?.says;
  return (
    <section aria-label="Verdict" class="verdict">
      {says === undefined ? <Loading what="Comparing steps…" /> : <p>{String(says)}</p>}
    </section>
  );
}

/** How long steps take: the numbers behind the verdict, and how the steps are spread. */
export function Steps({ compared }: { compared: Compared }) {
  const answer = useCompared(compared, "steps");
  const spread = useCompared(compared, "step_durations");
  const failed = [answer, spread].find((answer) => answer.state === "failed");
  if (failed?.state === "failed") return <ErrorNotice error={failed.error} />;
  const row = answer.value?.results[0];
  if (!row || !spread.value) return <Loading />;
  const ranges = spread.value.results.map(rangeOf);
  return (
    <section aria-label="Steps">
      <h2>Steps</h2>
      <p class="dim">{answer.value?.definition}</p>
      <div class="timeline-rows">
        <table>
          <caption class="hidden">How long steps take</caption>
          <PlainHead columns={["steps", ...COLUMNS.map(([, label]) => ({ number: label }))]} />
          <tbody>
            {(["a", "b"] as const).map((side, at) => (
              <tr key={side}>
                <th scope="row">
                  {at === 0 ? "before" : "now"}: {compared.names[at]}
                </th>
                {COLUMNS.map(([name, , unit]) => (
                  <td key={name} class="number">
                    <Value unit={unit} value={row[`${side}_${name}`]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <dl class="facts">
        <div>
          <dt>difference</dt>
          <dd>
            <Value unit="ns" value={row.change_ns} /> (<Value unit="ratio" value={row.change_ratio} />)
          </dd>
        </div>
        <div>
          <dt>95 % confidence interval</dt>
          <dd>
            <Value unit="ns" value={row.change_low_ns} />
            {typeof row.change_low_ns !== "object" && (
              <>
                {" to "}
                <Value unit="ns" value={row.change_high_ns} />
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>probability of so clear a difference by chance</dt>
          <dd title={row.p_value === null ? "not known" : String(row.p_value)}>
            {typeof row.p_value === "number" ? probability(row.p_value) : "–"}
          </dd>
        </div>
      </dl>
      {ranges.length > 0 && (
        <Figure name="steps" title={<span>Steps by duration</span>}>
          <Overlaid label="Steps by duration" ranges={ranges} names={compared.names} nouns={["step", "steps"]} />
        </Figure>
      )}
    </section>
  );
}

const rangeOf = (row: Row): PairRange => ({
  from_ns: Number(row.from_ns),
  to_ns: Number(row.to_ns),
  a: Number(row.a_steps),
  b: Number(row.b_steps),
});

/** As the sentence writes it. */
const probability = (p: number) => (p < 0.001 ? "< 0.001" : p.toFixed(3));
