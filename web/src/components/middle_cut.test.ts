import { expect, test } from "vitest";
import { shortName } from "../format/names";
import { endOf } from "./MiddleCut";

/** What is left of a name, whatever gives way. */
const end = (text: string) => {
  const at = endOf(text);
  return at === null ? null : text.slice(at);
};

test("the end of a kernel stays, also that of its template", () => {
  const name = (type: string) =>
    `void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<${type}> >(int)`;
  expect(end(shortName(name("c10::BFloat16")))).toBe("or<BFloat16> >");
  expect(end(shortName(name("float")))).toBe("nctor<float> >");
  expect(end("dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>")).toBe(", 3, 3, false>");
  expect(end("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize")).toBe("_tn_n_tilesize");
});

test("short names, and names that end in an address, are cut at their end alone", () => {
  expect([end("aten::mm"), end("gemm<float, 4, 4, false>")]).toEqual([null, null]);
  expect(end("<built-in method copy_ of Tensor object at 0x7d67180cc500>")).toBe(null);
});

test("a character of two halves is not parted", () => {
  expect(end(`${"a".repeat(30)}${"😀".repeat(7)}`)).toBe("😀".repeat(7));
  expect(end(`${"a".repeat(30)}${"😀".repeat(7)}b`)).toBe(`${"😀".repeat(7)}b`);
});
