import { expect, test } from "vitest";
import { fitting, middleCut, remembering, shortName } from "./labels";

const measure = (text: string) => text.length * 7;

test("a text is cut where its room ends, and never wider than that", () => {
  expect(fitting("aten::addmm", 100, measure)).toBe("aten::addmm");
  expect(fitting("aten::addmm", 60, measure)).toBe("aten::a…");
  expect(fitting("aten::addmm", 20, measure)).toBe("");
  expect(fitting("", 100, measure)).toBe("");
  for (let room = 0; room < 120; room++) {
    expect(measure(fitting("void long_name<int>(float*)", room, measure))).toBeLessThanOrEqual(room);
  }
});

test("letters of unequal width do not make a text too wide", () => {
  const uneven = (text: string) => [...text].reduce((sum, letter) => sum + (letter === "W" ? 20 : 3), 0);
  for (let room = 0; room < 200; room++) {
    expect(uneven(fitting("WWWWiiiiiiiiiiiiiiiiii", room, uneven))).toBeLessThanOrEqual(room);
  }
});

test("no letter is cut in half", () => {
  const cut = fitting("🦀🦀🦀🦀🦀🦀🦀🦀", 40, measure);
  expect(cut).toMatch(/^🦀+…$/u);
});

test("a C++ function is called by its last name, anything else as it is", () => {
  const kernel = "void at::native::(anonymous namespace)::vectorized_elementwise_kernel<4, at::native::Add<int>>(int)";
  expect(shortName(kernel)).toBe("vectorized_elementwise_kernel");
  expect(shortName("void cutlass::Kernel<cutlass_80_wmma>(Params)")).toBe("Kernel");
  const same = ["aten::mm", "ProfilerStep#3", "ampere_sgemm_128x64_tn", "nn.Module: Linear_0", "torch/nn/a.py(12): f"];
  for (const name of [...same, "", "void ", "<b>x</b>(1)"]) expect(shortName(name)).toBe(name);
});

test("a width is measured once", () => {
  let count = 0;
  const known = remembering((text) => {
    count++;
    return text.length;
  });
  expect([known("abc"), known("abc"), known("de")]).toEqual([3, 3, 2]);
  expect(count).toBe(2);
});

test("a text that has no room is cut in its middle, between letters", () => {
  const cut = (text: string, room: number) => middleCut(text, room, (text) => [...text].length);
  expect(cut("as it is", 8)).toBe("as it is");
  expect(cut("abcdefghij", 6)).toBe("abc…ij");
  expect(cut("abcdefghij", 7)).toBe("abc…hij");
  expect(cut("𝒂𝒃𝒄𝒅𝒆", 4)).toBe("𝒂𝒃…𝒆");
  expect(cut("abcdefghij", 2)).toBe("");
  const long = cut("x".repeat(100_000), 20);
  expect([...long].length).toBe(20);
});
