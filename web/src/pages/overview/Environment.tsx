import type { Report } from "../../api/types";
import { Value } from "../../components/Value";
import { detail } from "../../state/runs";

/** What the run ran on, and everything else that its recording says of it. */
export function Environment({ report }: { report: Report }) {
  const facts = detail.value?.facts ?? [];
  return (
    <section aria-label="Environment">
      <h2>Environment</h2>
      <dl class="facts">
        {report.environment.map((fact, at) => (
          <div key={`${at} ${fact.name}`}>
            <dt>{fact.name}</dt>
            <dd>{fact.value}</dd>
          </div>
        ))}
        <div>
          <dt>recorded</dt>
          <dd>
            <Value unit="ns" value={report.span_ns} />
          </dd>
        </div>
        <div>
          <dt>{report.run.ranks.length === 1 ? "rank" : "ranks"}</dt>
          <dd>{report.run.ranks.length === 1 ? report.run.ranks[0] : report.run.ranks.length}</dd>
        </div>
      </dl>
      <details>
        <summary>Processes ({report.processes.length})</summary>
        <ul>
          {report.processes.slice(0, 2000).map((process, at) => (
            <li key={`${at} ${process.pid}`}>
              rank {process.rank}: {process.name}
              {process.pid !== null && <span class="dim"> pid {String(process.pid)}</span>}
              {process.is_helper && <span class="dim"> helper</span>}
            </li>
          ))}
        </ul>
      </details>
      <details>
        <summary>Everything that the recording says of itself ({facts.length})</summary>
        <dl class="all-facts">
          {facts.map(([key, value], at) => (
            <div key={`${at} ${key}`}>
              <dt>{key}</dt>
              <dd class="pre">{value}</dd>
            </div>
          ))}
        </dl>
      </details>
      <details>
        <summary>Sources ({report.run.sources.length})</summary>
        <ul>
          {report.run.sources.slice(0, 2000).map((source) => (
            <li key={source}>
              <code>{source}</code>
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}
