// Numbers as people read them, letter for letter as the command line prints them (crates/base/src/units.rs).
// vectors.tsv, which the command's own code writes, is what the tests compare with.

import type { Num } from "../api/types";

type Scale = readonly (readonly [unit: string, size: number])[];

const NS: Scale = [
  ["ns", 1],
  ["µs", 1e3],
  ["ms", 1e6],
  ["s", 1e9],
  ["h", 3.6e12],
];
const BYTES: Scale = [
  ["B", 1],
  ["KiB", 2 ** 10],
  ["MiB", 2 ** 20],
  ["GiB", 2 ** 30],
  ["TiB", 2 ** 40],
];
const BYTES_PER_S: Scale = [
  ["B/s", 1],
  ["kB/s", 1e3],
  ["MB/s", 1e6],
  ["GB/s", 1e9],
  ["TB/s", 1e12],
];

const LARGE: Scale = [
  ["", 1],
  ["k", 1e3],
  ["M", 1e6],
  ["G", 1e9],
  ["T", 1e12],
  ["P", 1e15],
];

/** `1234567` ns as `1.23 ms`. */
export const formatNs = (ns: Num): string => scaled(ns, NS);

/** `1536` bytes as `1.50 KiB`. */
export const formatBytes = (bytes: Num): string => scaled(bytes, BYTES);

/** `1500000000` bytes in a second as `1.50 GB/s`. */
export const formatBytesPerS = (rate: Num): string => scaled(rate, BYTES_PER_S);

/** `1234567` as `1,234,567`. */
export const formatCount = (count: Num): string => grouped(String(count));

/** `21338880000` as `21.3 G`. */
export const formatLarge = (count: Num): string => scaled(count, LARGE).trim();

/** `0.1561` as `15.6 %`. */
export const formatRatio = (ratio: number): string => `${toFixedEven(ratio * 100, 1)} %`;

/** A plain fraction: `2.5` as `2.50`. */
export const formatPlain = (value: number): string => toFixedEven(value, 2);

/** A number of which nothing is known, to four digits: `0.00123456` as `0.001235`, but every digit of a whole number. */
export function formatNumber(value: Num): string {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return formatCount(value);
  const absolute = Math.abs(value);
  if (absolute >= 1e15 || absolute < 1e-4) return value.toExponential(3);
  if (absolute < 1000) return String(Number(value.toPrecision(4)));
  const [whole = "", decimals] = value.toFixed(2).split(".");
  return `${grouped(whole)}.${decimals}`;
}

function scaled(value: Num, scale: Scale): string {
  const magnitude = value < 0 ? -value : value;
  const [unit, size] = scale.findLast(([, size]) => magnitude >= size) ?? (scale[0] as readonly [string, number]);
  if (size === 1) return `${value} ${unit}`;
  const number = Number(value) / size;
  const absolute = Math.abs(number);
  if (absolute >= 99.95) return `${grouped(toFixedEven(number, 0))} ${unit}`;
  return `${toFixedEven(number, absolute >= 9.995 ? 1 : 2)} ${unit}`;
}

/** The digits of a whole number in groups of three. */
function grouped(number: string): string {
  return number.replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * `toFixed`, but what lies exactly between two results goes to the even one, as in Rust. A double lies there only when
 * it is an odd number of the next finer binary fraction.
 */
function toFixedEven(value: number, decimals: number): string {
  const absolute = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  const halves = absolute * 2 ** (decimals + 1);
  if (!Number.isInteger(halves) || halves % 2 === 0) return sign + absolute.toFixed(decimals);
  const below = Math.floor(absolute * 10 ** decimals);
  const even = below % 2 === 0 ? below : below + 1;
  return sign + (even / 10 ** decimals).toFixed(decimals);
}
