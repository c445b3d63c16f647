import { type Query, runPath, withQuery } from "../../api/paths";
import type { Envelope, Row } from "../../api/types";
import { linkedName, nameCondition, sourceLine } from "../../components/links";
import { formatCondition } from "../../components/table/choices";
import { Value } from "../../components/Value";
import { formatCell } from "../../format/cell";
import { shortName } from "../../format/names";
import { useAnswer } from "../../state/answer";
import { selection } from "../../state/route";
import { detail, runId } from "../../state/runs";
import { ownPlaces } from "./stack";

/** Callers of one operator that are looked at: of calls in the backward pass none has a stack. */
const CALLERS = 20;
/** Lines that are named. */
const LINES = 3;

/** The operator with the most of what is measured, and the lines of the program that call it for most of that. */
export function Slowest({ by, words }: { by: string; words: string }) {
  const name = useOperators(by, [["limit", 1]])?.results[0]?.name;
  const known = typeof name === "string" ? formatCondition(nameCondition("name", linkedName(name))) : null;
  const callers = useOperators(
    by,
    known === null
      ? null
      : [
          ["group_by", "stack"],
          ["where", known],
          ["limit", CALLERS],
        ],
  );
  const isKnown = (row: Row) => typeof row.stack === "string" && ownPlaces(row.stack).length > 0 && Number(row[by]) > 0;
  const caller = callers?.results.find(isKnown);
  const column = callers?.columns.find((column) => column.name === by);
  if (typeof name !== "string" || !caller || !column) return null;
  return (
    <p class="slowest">
      Most {words}: <strong>{formatCell("text", shortName(name))}</strong>. Of it{" "}
      <Value unit={column.unit} value={caller[by]} /> by calls in{" "}
      {ownPlaces(String(caller.stack))
        .slice(0, LINES)
        .map(({ file, line }, at) => {
          const text = `${file.slice(file.lastIndexOf("/") + 1)}:${line}`;
          return (
            <span key={`${file}:${line}`}>
              {at > 0 && " ‹ "}
              <a href={sourceLine(file, line)}>{text}</a>
            </span>
          );
        })}
      .
    </p>
  );
}

/** The first operators of the part that was chosen; nothing is asked without a query. */
function useOperators(by: string, query: Query | null): Envelope | undefined {
  const asked = query && [...selection.value, ...query, ["sort", by] as const];
  const answer = useAnswer<Envelope>(
    asked && withQuery(runPath(runId.value, "analyses/operators"), asked),
    detail.value?.version ?? 0,
  );
  return answer.value ?? undefined;
}
