import { expect, test } from "vitest";
import { clipped, printable } from "./printable";

test("what is not seen is written out, and everything else stays", () => {
  expect(printable("\u202egnp.exe\u2066")).toBe("\\u202egnp.exe\\u2066");
  expect(printable("a\u0000b\u001b[31m\u007f\u0085\u200b\ufeff")).toBe("a\\x00b\\x1b[31m\\x7f\\x85\\u200b\\ufeff");
  for (const text of ["", "aten::mm", "two\nlines\tand a tab", "日本語 🦀 مرحبا שלום", "a\u200db"])
    expect(printable(text)).toBe(text);
});

test("a long text is clipped, never within a character", () => {
  expect(clipped("abc", 3)).toBe("abc");
  expect(clipped("abcd", 3)).toBe("ab…");
  expect(clipped("a🦀bcd", 3)).toBe("a…");
  expect(clipped("x".repeat(1_000_000), 200).length).toBe(200);
});
