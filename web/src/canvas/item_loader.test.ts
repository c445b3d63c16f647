import { expect, test } from "vitest";
import { hitIn } from "./hit";
import { type Item, ItemLoader, isMade, pieceOf } from "./item_loader";
import { Scale } from "./view";

const item = (start_ns: number, dur_ns: number, name: string, nth = 4): Item => ({
  start_ns,
  dur_ns,
  name,
  class: nth,
});

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
      return [item(0, 1, "a")];
    },
    () => arrivals++,
    () => {},
  );
  loader.want([-1]);
  expect(loader.of(-1)).toEqual([]);
  loader.want([-1, -2]);
  await new Promise((resolve) => setTimeout(resolve, 0));
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
  gone.want([-1]);
  gone.dispose();
  const shown = new ItemLoader(
    failing,
    () => {},
    (error) => errors.push(error),
  );
  shown.want([-1]);
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(errors).toEqual(["broken"]);
});
