import { beforeEach, expect, test, vi } from "vitest";
import type { RunDetail } from "../../api/types";
import type { Slice } from "../../canvas/model";
import type { Timeline } from "../../canvas/timeline";
import { LatestTask } from "../../components/timeline-shared/latest_task";
import type { Requests } from "../../components/timeline-shared/requests";
import { Rows } from "../../components/timeline-shared/rows";
import { param, setParams } from "../../state/route";
import { detail } from "../../state/runs";
import { Selection } from "./selection";
import type { Viewport } from "./viewport";

const MM: Slice = {
  id: 7,
  name: "mm",
  kind: "op",
  class: "host_op",
  row: null,
  rank: 2,
  track: null,
  start_ns: 5,
  dur_ns: 1,
  is_unfinished: false,
};

beforeEach(() => {
  Object.assign(globalThis, { history: { pushState: () => {}, replaceState: () => {} } });
  detail.value = { shows_all: false } as RunDetail;
  setParams({ rank: null, view: null, at: "5", "at-rank": "2", "at-name": "mm" });
});

/** A selection that follows the address, on the timeline of a rank or on that of collectives, and what it asks for. */
function followed(ofRank: number | null, found: Slice | null) {
  const asked: string[] = [];
  const errors: unknown[] = [];
  const requests = {
    ofRank,
    named: async ({ rank, name }: { rank: number; name: string }) => {
      asked.push(`${name} of ${rank}`);
      return found;
    },
    details: async (slice: number) => {
      asked.push(`slice ${slice}`);
      return { slice: found };
    },
  } as unknown as Requests;
  const rows = new Rows(
    [],
    () => ({ open: [], shut: [], pins: [] }),
    () => ofRank,
    () => {},
  );
  const tasks = new LatestTask((error) => error && errors.push(error));
  const viewport = { at: () => ({}), centred: () => ({ view: "0-10" }) } as unknown as Viewport;
  const selection = new Selection(requests, rows, viewport, tasks);
  const stop = selection.follow({} as Timeline);
  return { selection, asked, errors, stop };
}

test("a slice is selected on the timeline of its rank", async () => {
  setParams({ rank: "2" });
  const { selection, asked, stop } = followed(2, MM);
  await vi.waitFor(() => expect(selection.details.value?.slice.id).toBe(7));
  expect(asked).toEqual(["mm of 2", "slice 7"]);
  // The address then names one of another rank, which this timeline does not have.
  setParams({ "at-rank": "3" });
  expect([selection.details.value, selection.slice]).toEqual([null, null]);
  expect(asked.length).toBe(2);
  stop();
});

test("a slice that is no collective is looked for on the timeline of its rank", async () => {
  const { selection, errors, stop } = followed(null, null);
  await vi.waitFor(() => expect(param("rank")).toBe("2"));
  expect([selection.details.value, errors]).toEqual([null, []]);
  stop();
});

test("a moment of a rank is shown on the timeline of that rank", () => {
  setParams({ "at-name": null });
  const { asked, stop } = followed(null, null);
  expect([param("rank"), param("view"), asked]).toEqual(["2", undefined, []]);
  stop();
});

test("where all events are shown, a slice that is not there is an error", async () => {
  detail.value = { shows_all: true } as RunDetail;
  const { errors, stop } = followed(null, null);
  await vi.waitFor(() => expect(errors.length).toBe(1));
  expect([param("rank"), String(errors[0])]).toEqual([undefined, expect.stringContaining("not in this run")]);
  stop();
});
