// Where the roofline picture has its points and roofs. Pure: numbers are those of the rows.

import type { Row } from "../../api/types";

/** An operator, or what else a row stands for. */
export interface RooflinePoint {
  readonly row: Row;
  readonly name: string;
  /** Operations per byte. */
  readonly x: number;
  /** Operations per second. */
  readonly y: number;
  readonly device_ns: number;
}

/** A peak rate, in words. */
export interface Roof {
  readonly words: string;
  readonly flops_per_s: number;
}

/** Rows of which operations and bytes are known, the one with the most device time first. */
export function pointsOf(rows: readonly Row[]): RooflinePoint[] {
  const points = rows.map((row) => ({
    row,
    name: String(row.name ?? "–"),
    x: Number(row.flops_per_byte ?? 0),
    y: Number(row.flops_per_s ?? 0),
    device_ns: Number(row.device_ns ?? 0),
  }));
  return points.filter(({ x, y }) => x > 0 && y > 0).sort((one, other) => other.device_ns - one.device_ns);
}

/** What limits work at the roofline, as it is drawn and told. */
export const BOUNDS = [
  { bound: "compute", colour: "compute", words: "bound by computing" },
  { bound: "memory", colour: "copy", words: "bound by memory" },
  { bound: null, colour: "other", words: "not known: the device's peak rates are not" },
] as const;

export const boundOf = ({ bound }: Row): (typeof BOUNDS)[number] =>
  BOUNDS.find((known) => known.bound === bound) ?? BOUNDS[2];

const ROOFS = [
  ["fp8_flops_per_s", "8-bit floats"],
  ["fp16_flops_per_s", "16-bit floats"],
  ["fp32_tensor_flops_per_s", "32-bit floats in tensor cores"],
  ["fp32_flops_per_s", "32-bit floats"],
] as const;

/** The peak rates of a device, the highest first. Of those that are equal one is enough. */
export function roofsOf(device: Row): Roof[] {
  const known = ROOFS.map(([column, words]) => ({ words, flops_per_s: Number(device[column] ?? 0) }));
  const roofs = known.filter(({ flops_per_s }) => flops_per_s > 0).sort((a, b) => b.flops_per_s - a.flops_per_s);
  return roofs.filter((roof, at) => roofs.findIndex((other) => other.flops_per_s === roof.flops_per_s) === at);
}

/** A product that the run has devices of. */
export interface Product {
  readonly name: string;
  /** One of them: all have the same peak rates. */
  readonly device: Row;
  readonly count: number;
}

/** The products of which there are devices, in their order. What has no name is a product of its own. */
export function productsOf(devices: readonly Row[]): Product[] {
  const products = new Map<string, Product>();
  for (const device of devices) {
    const name = String(device.name ?? "unnamed");
    const known = products.get(name);
    products.set(name, { name, device: known?.device ?? device, count: (known?.count ?? 0) + 1 });
  }
  return [...products.values()];
}

/** From and to which power of ten an axis goes. */
export interface Decades {
  readonly from: number;
  readonly to: number;
}

/** Whole decades around these positive values. */
export function decadesOf(values: readonly number[]): Decades {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  if (logs.length === 0) return { from: 0, to: 1 };
  const from = Math.floor(Math.min(...logs));
  return { from, to: Math.max(from + 1, Math.ceil(Math.max(...logs))) };
}

/** A value as a share of an axis, from 0 to 1. */
export const shareOf = (value: number, { from, to }: Decades): number => (Math.log10(value) - from) / (to - from);
