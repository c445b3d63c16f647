// Hot lines in words.

import { formatCount, formatNs } from "../../../../web/src/format/units";
import type { HotLine, HotLines } from "./hot_lines";

/** What stands beside a line: `18 % · 42.0 ms/step`. Without steps, the time of the whole run. */
export function lineWords({ share, totalNs }: HotLine, { steps }: HotLines): string {
  const time = steps > 0 ? `${formatNs(Math.round(totalNs / steps))}/step` : formatNs(totalNs);
  return `${percent(share)} · ${time}`;
}

/** What is shown on hover, a line of text each. */
export function detailWords(line: HotLine, { isDevice, steps }: HotLines): string[] {
  const what = isDevice ? "device time" : "host time";
  const of = isDevice ? "of what devices did for operators" : "of the time of all operators";
  const words = [
    `${percent(line.share)} ${of}`,
    `${what} of what is called from here: ${formatNs(line.totalNs)}, directly ${formatNs(line.selfNs)}`,
    `operators called directly: ${formatCount(line.count)}`,
  ];
  return steps > 0 ? [...words, `steps of all ranks: ${formatCount(steps)}`] : words;
}

/** Whole percents, and tenths below 10. */
function percent(share: number): string {
  const value = share * 100;
  return `${value < 9.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}
