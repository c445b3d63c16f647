import { useEffect, useState } from "preact/hooks";
import { bodyOf } from "../../api/client";
import type { ErrorBody } from "../../api/types";
import { isSample, type Slice } from "../../canvas/model";
import { sliceRows } from "../../canvas/timeline";
import { Empty, ErrorNotice, Loading } from "../../components/Notice";
import { formatCount } from "../../format/units";
import type { TimelineController } from "./controller";
import { SliceTable } from "./SliceTable";

/** Slices that are listed. */
const LIMIT = 200;

/** What the canvas shows, as a list: the same for those who cannot see it, and for the keyboard. */
export function ListView({ controller }: { controller: TimelineController }) {
  const view = controller.viewport.shown.value;
  const rows = sliceRows(controller.rows.lines.value.lines).join();
  const [slices, setSlices] = useState<readonly Slice[] | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  useEffect(() => {
    if (!rows) return;
    const abort = new AbortController();
    const ids = rows.split(",").map(Number);
    const timer = setTimeout(() => {
      controller.requests.list(ids, view, LIMIT, abort.signal).then(
        (slices) => {
          setSlices(slices);
          setError(null);
        },
        (error: unknown) => {
          if (!abort.signal.aborted) setError(bodyOf(error));
        },
      );
    }, 150);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [controller, view, rows]);

  if (error) return <ErrorNotice error={error} />;
  if (!rows) return <Empty>No row of slices is shown: open a group.</Empty>;
  if (!slices) return <Loading />;
  const nouns = slices.some(isSample) ? "slices and samples" : "slices";
  const caption =
    slices.length === LIMIT
      ? `The first ${formatCount(LIMIT)} ${nouns} of what is shown; zoom in for all`
      : `${formatCount(slices.length)} ${nouns} are shown`;
  return <SliceTable controller={controller} slices={slices} caption={caption} />;
}
