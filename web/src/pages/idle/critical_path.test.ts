import { expect, test } from "vitest";
import { criticalPath } from "./critical_path";

const step = (compute_ns: number, queue_wait_ns: number, is_complete: boolean) => ({
  compute_ns,
  queue_wait_ns,
  host_op_ns: 0,
  is_complete,
});

test("the mean of whole steps, its longest part first", () => {
  const mean = criticalPath([step(10, 30, true), step(20, 40, true), step(900, 0, false)]);
  expect(mean).toEqual({
    steps: 2,
    breakdown: {
      total_ns: 50,
      parts: [
        { class: "queue_wait", ns: 35, ratio: 0.7 },
        { class: "compute", ns: 15, ratio: 0.3 },
      ],
    },
  });
});

test("where no step was recorded whole, the others; without steps there is none", () => {
  expect(criticalPath([step(5, 0, false)])?.steps).toBe(1);
  expect(criticalPath([step(0, 0, true)])).toBeNull();
  expect(criticalPath([])).toBeNull();
});
