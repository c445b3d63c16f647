import { useMemo } from "preact/hooks";
import { runPath } from "../../api/paths";
import type { RunDetail } from "../../api/types";
import { ErrorNotice, Loading } from "../../components/Notice";
import { useAnswer } from "../../state/answer";
import { hrefWith, param, timeWindow } from "../../state/route";
import { runNamed } from "../../state/run_names";
import { detail, runId, runs } from "../../state/runs";
import type { Compared } from "./asked";
import { Changes } from "./Changes";
import { DiffFlame } from "./DiffFlame";
import { Doubts } from "./Doubts";
import { Durations } from "./Durations";
import { PickSides } from "./PickSides";
import { StepDifference } from "./StepParts";
import { Steps, Verdict } from "./Steps";
import { sideName, sidesOf } from "./sides";
import { Timelines } from "./Timelines";
import { Trend } from "./Trend";
import { WhatDiffers } from "./WhatDiffers";
import "./compare.css";

/** Two runs, or two ranks of one, side by side. */
export default function Compare() {
  const list = runs.value ?? [];
  const known = detail.value;
  const other = param("b");
  const b = other === undefined ? undefined : (runNamed(list, other)?.id ?? -1);
  const address = { run: runId.value, rank: param("rank"), b, bRank: param("b-rank") };
  const sides = sidesOf(
    address,
    list.map((run) => run.id),
    known?.run.ranks ?? [],
  );
  const second = sides && list.find((run) => run.id === sides.b.run);
  const answer = useAnswer<RunDetail>(second ? runPath(second.id) : null, second?.version ?? 0);
  const key = JSON.stringify([sides, list.map((run) => [run.id, run.name]), known?.version, answer.value?.version]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has everything that is compared
  const compared = useMemo<Compared | null>(() => {
    if (!sides || !known || !answer.value || answer.value.id !== sides.b.run) return null;
    const names = [sideName(sides.a, list), sideName(sides.b, list)] as const;
    return { sides, names, details: [known, answer.value] };
  }, [key, known, answer.value]);
  if (!sides || !known) return null;
  const missing = { what: "There is no such run:", where: other };
  return (
    <>
      <h1>Compare</h1>
      <PickSides sides={sides} details={[known, answer.value]} />
      {(param("step") !== undefined || timeWindow.value) && (
        <p class="notice">
          Runs are compared with all their steps: the step or range that is selected for other pages has no effect here.{" "}
          <a href={hrefWith({ step: null, window: null })}>Clear it</a>
        </p>
      )}
      {!second && <ErrorNotice error={missing} />}
      {answer.state === "failed" && <ErrorNotice error={answer.error} />}
      {second && answer.state !== "failed" && !compared && <Loading what={`Reading ${second.name}…`} />}
      {compared && (
        <>
          <Verdict compared={compared} />
          <WhatDiffers compared={compared} />
          <Doubts compared={compared} />
          <StepDifference compared={compared} />
          <Trend compared={compared} />
          <Steps compared={compared} />
          <Changes compared={compared} />
          <Durations compared={compared} />
          <DiffFlame compared={compared} />
          <Timelines compared={compared} />
        </>
      )}
    </>
  );
}
