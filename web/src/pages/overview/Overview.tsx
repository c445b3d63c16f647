import { withToken } from "../../api/client";
import { runPath, withQuery } from "../../api/paths";
import type { Report } from "../../api/types";
import { AdviceList } from "../../components/AdviceList";
import { FindingList } from "../../components/FindingList";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { Words } from "../../components/Words";
import { useAnswer } from "../../state/answer";
import { hrefWith, selection, timeWindow } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { Devices } from "./Devices";
import { Environment } from "./Environment";
import { Memory } from "./Memory";
import { NotJudged } from "./NotJudged";
import { Steps } from "./Steps";
import { TopAdvice } from "./TopAdvice";

/** What a person wants to know of a run first; every number is that of `stepscope report`. */
export default function Overview() {
  const version = detail.value?.version ?? 0;
  const asked = selection.value;
  const answer = useAnswer<Report>(withQuery(runPath(runId.value, "report"), asked), version);
  if (answer.state === "failed") return <ErrorNotice error={answer.error} />;
  const report = answer.value;
  if (!report) return <Loading what="Summing up the run…" />;
  return (
    <div aria-busy={answer.state === "loading"}>
      <h1>{report.run.name}</h1>
      {timeWindow.value && (
        <Empty>
          This page covers the selected range only. <a href={hrefWith({ window: null })}>Show the whole run</a>
        </Empty>
      )}
      <section aria-label="Verdict" class="verdict">
        {report.verdict.map((sentence) => (
          <p key={sentence}>
            <Words text={sentence} />
          </p>
        ))}
      </section>
      <div class="glance">
        <Steps report={report} />
        <TopAdvice advice={report.advice} />
        <div>
          <Devices report={report} />
          <Memory />
        </div>
      </div>
      <AdviceList advice={report.advice} />
      <NotJudged coverage={report.coverage} />
      <Environment report={report} />
      {report.findings.length > 0 && (
        <section aria-label="Findings">
          <h2>Findings</h2>
          <FindingList findings={report.findings} />
        </section>
      )}
      <section aria-label="Files">
        <h2>Files</h2>
        <p>
          <a href={withToken(withQuery(runPath(runId.value, "report.html"), asked))} download="report.html">
            This report as one HTML page
          </a>{" "}
          ·{" "}
          <a href={withToken(withQuery(runPath(runId.value, "report"), asked))} download="report.json">
            as JSON
          </a>
        </p>
      </section>
    </div>
  );
}
