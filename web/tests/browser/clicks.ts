// How often a person presses the mouse for what they want to know.

import type { Page } from "playwright-core";
import { expect } from "vitest";

interface Counting {
  presses?: number;
}

/** Presses of the mouse so far, each drag one of them. A choice in a list is two: it is opened, and one is taken. */
function pressesOf(page: Page): Promise<number> {
  return page.evaluate(() => {
    const counting = window as Counting;
    if (counting.presses === undefined) {
      counting.presses = 0;
      const count = (by: number) => {
        counting.presses = (counting.presses ?? 0) + by;
      };
      addEventListener("pointerdown", () => count(1), { capture: true });
      addEventListener("change", ({ target }) => count(target instanceof HTMLSelectElement ? 2 : 0), { capture: true });
    }
    return counting.presses;
  });
}

/** Does a task on a page, and fails where that took more presses of the mouse than `most`. */
export async function withinClicks(page: Page, most: number, task: () => Promise<void>): Promise<void> {
  const before = await pressesOf(page);
  await task();
  expect((await pressesOf(page)) - before, "presses of the mouse").toBeLessThanOrEqual(most);
}

/** Drags over a part of an element, given in shares of its width, at a height. */
export async function dragOver(page: Page, selector: string, from: number, to: number, y: number): Promise<void> {
  const box = await page.locator(selector).boundingBox();
  if (!box) throw new Error(`there is no ${selector}`);
  await page.mouse.move(box.x + box.width * from, box.y + y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + y, { steps: 4 });
  await page.mouse.up();
}
