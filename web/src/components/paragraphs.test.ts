import { expect, test } from "vitest";
import { paragraphs } from "./paragraphs";

test("lines join to paragraphs, and numbers begin items", () => {
  const text = "One\nparagraph.\n\nThe first of:\n\n1. `a`: b\n   goes on;\n2. c.\n\nLast.";
  expect(paragraphs(text)).toEqual([
    { text: "One paragraph.", isItem: false },
    { text: "The first of:", isItem: false },
    { text: "1. `a`: b goes on;", isItem: true },
    { text: "2. c.", isItem: true },
    { text: "Last.", isItem: false },
  ]);
});
