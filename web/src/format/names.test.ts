import { expect, test } from "vitest";
import { shortName } from "./names";

test("a kernel's name loses what tells least, so that its operation is seen", () => {
  const mul =
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::BinaryFunctor<c10::BFloat16, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)";
  expect(shortName(mul)).toBe(
    "vectorized_elementwise_kernel<4, BinaryFunctor<BFloat16, MulFunctor<float> >, array<char*, 3ul> >",
  );
  expect(shortName("void at::native::(anonymous namespace)::CatArrayBatchedCopy<int, 4>(unsigned int)")).toBe(
    "CatArrayBatchedCopy<int, 4>",
  );
  expect(shortName("void f<at::native::g(at::T&)::{lambda(int)#1}>(int, void (*)(int))")).toBe(
    "f<g(T&)::{lambda(int)#1}>",
  );
});

test("other names are as they were", () => {
  for (const name of [
    "Memcpy HtoD (Pageable -> Device)",
    "aten::add_",
    "sm90_xmma_gemm_bf16",
    "void (int)",
    "void ",
    "<built-in method embedding of type object>",
    `void ${"a::".repeat(10_000)}b()`,
  ])
    expect(shortName(name)).toBe(name);
  expect(shortName("void cut::off<a::b, (")).toBe("off<b, (");
});
