import type { Row } from "../../api/types";
import { timelineAt } from "../../components/links";
import type { RowLink } from "../../components/table/links";
import { hrefOf, hrefWith } from "../../state/route";

/** From a row to the rank that `column` has: on every page, and on the timeline, since when the row says so. */
export const toRank =
  (column = "rank") =>
  (row: Row): RowLink[] => {
    const [rank, since] = [row[column], row.since_ns];
    if (typeof rank !== "number") return [];
    const isKnown = typeof since === "number" || typeof since === "bigint";
    return [
      { label: `Rank ${rank} on every page`, href: hrefWith({ rank: String(rank) }) },
      {
        label: `Rank ${rank} on the timeline`,
        href: isKnown ? timelineAt({ rank, start_ns: since }) : hrefOf("timeline", { rank: String(rank) }),
      },
    ];
  };
