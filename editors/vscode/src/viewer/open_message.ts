// What the viewer says when a person clicks a line of source, and whether it is believed.

/** A line to open. */
export interface OpenRequest {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
}

const MAX_PATH = 4_096;
const MAX_LINE = 100_000_000;

/** What arrived at the page around the viewer. */
export interface Arrived {
  readonly data: unknown;
  readonly origin: string;
  readonly source: unknown;
}

/** Who may speak: the frame's window, from the viewer's origin, with the nonce that it was opened with. */
export interface Expected {
  readonly origin: string;
  readonly source: unknown;
  readonly nonce: string;
}

/** The line that a message asks for; null for anything that the viewer did not send. */
export function openRequestIn(arrived: Arrived, expected: Expected): OpenRequest | null {
  if (arrived.source !== expected.source || arrived.source === null) return null;
  if (arrived.origin !== expected.origin) return null;
  if (!isRecord(arrived.data) || arrived.data.stepscope !== 1 || arrived.data.kind !== "open") return null;
  return arrived.data.nonce === expected.nonce ? readOpenRequest(arrived.data) : null;
}

/** The line that an object asks for; null when it asks for none. */
export function readOpenRequest(data: unknown): OpenRequest | null {
  if (!isRecord(data)) return null;
  const { file, line } = data;
  if (typeof file !== "string" || file === "" || file.length > MAX_PATH || /\p{Cc}/u.test(file)) return null;
  if (typeof line !== "number" || !Number.isInteger(line) || line < 1 || line > MAX_LINE) return null;
  return { file, line };
}

const isRecord = (data: unknown): data is Record<string, unknown> => typeof data === "object" && data !== null;
