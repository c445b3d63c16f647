import { expect, test } from "vitest";
import { hitIn } from "./hit";
import { type Item, ItemLoader, isMade, pieceOf } from "./item_loader";
import { Scale, type Span } from "./view";

const item = (start_ns: number, dur_ns: number, name: string, nth = 4): Item => ({
  start_ns,
  dur_ns,
  name,
  class: nth,
});

const VIEW = { start_ns: 40, end_ns: 60 };
const arrival = () => new Promise((resolve) => setTimeout(resolve, 0));

test("items are drawn and found as those of tiles are, without a slice behind them", () => {
  const { tile, ...all } = pieceOf([item(0, 10, "wäit"), item(20, 5, "input", 9), item(30, 5, "wäit")]);
  const scale = new Scale({ start_ns: 0, end_ns: 100 }, 100);
  const at = (x: number) => hitIn(-1, [{ tile, ...all }], scale, x);
  expect([at(5)?.name, at(22)?.name, at(31)?.name, at(60)]).toEqual(["wäit", "input", "wäit", null]);
  expect(at(22)).toMatchObject({ start_ns: 20, dur_ns: 5, class: 9, slice: null, isSeveral: false });
});

test("a row is asked for once, and is no row of the server", async () => {
  const asked: number[] = [];
  let arrivals = 0;
  const loader = new ItemLoader(
    async (row) => {
      asked.push(row);
      return { items: [item(0, 1, "a")], isAll: true };
    },
    () => arrivals++,
    () => {},
  );
  loader.want([-1], VIEW);
  expect(loader.of(-1)).toEqual([]);
  loader.want([-1, -2], VIEW);
  await arrival();
  expect([asked, arrivals, loader.of(-1)[0]?.tile.length]).toEqual([[-1, -2], 2, 1]);
  expect([-1, 0].map(isMade)).toEqual([true, false]);
});

test("what fails is said, but not of a timeline that is gone", async () => {
  const errors: unknown[] = [];
  const failing = async () => {
    throw "broken";
  };
  const gone = new ItemLoader(
    failing,
    () => {},
    (error) => errors.push(error),
  );
  gone.want([-1], VIEW);
  gone.dispose();
  const shown = new ItemLoader(
    failing,
    () => {},
    (error) => errors.push(error),
  );
  shown.want([-1], VIEW);
  await arrival();
  expect(errors).toEqual(["broken"]);
});

test("where there are more items, those of the window are asked for, and the others stay around them", async () => {
  const asked: (Span | null)[] = [];
  const link = { start_ns: 41, rank: 0, name: "k" };
  const loader = new ItemLoader(
    async (_row, window) => {
      asked.push(window);
      const items = window
        ? [item(35, 10, "fine"), { ...item(45, 5, "linked"), link }]
        : [item(0, 30, "a"), item(60, 30, "b")];
      return { items, isAll: window !== null };
    },
    () => {},
    () => {},
  );
  const starts = () => Array.from(loader.of(-1)[0]?.tile.start_ns ?? []);
  loader.want([-1], VIEW);
  await arrival();
  expect(starts()).toEqual([0, 60]);
  loader.want([-1], VIEW);
  loader.want([-1], { start_ns: 41, end_ns: 59 });
  await arrival();
  expect(starts()).toEqual([0, 35, 45]);
  expect(asked).toEqual([null, { start_ns: 30, end_ns: 70 }]);
  expect([loader.item({ row: -1, start_ns: 45 })?.link, loader.item({ row: -1, start_ns: 46 })]).toEqual([link, null]);
  // A little further is known; what is much shorter, or elsewhere, is asked for.
  for (const [start_ns, end_ns] of [
    [45, 65],
    [50, 51],
    [100, 120],
  ] as const) {
    loader.want([-1], { start_ns, end_ns });
    await arrival();
  }
  expect(asked.slice(2)).toEqual([
    { start_ns: 42, end_ns: 74 },
    { start_ns: 90, end_ns: 130 },
  ]);
});
