// What a person has set.

import { workspace } from "vscode";

/** The settings of the extension, as they are now. */
export interface Settings {
  readonly command: string;
  readonly python: string;
  readonly recordArguments: readonly string[];
  readonly viewArguments: readonly string[];
  readonly sourceMap: Readonly<Record<string, string>>;
  readonly viewerAddress: string;
  readonly hasCodeLens: boolean;
  /** The least share of a hot line, between 0 and 1. */
  readonly threshold: number;
}

export function settings(): Settings {
  const all = workspace.getConfiguration("stepscope");
  return {
    command: all.get("command", "stepscope"),
    python: all.get("python", "python"),
    recordArguments: all.get("recordArguments", ["--stacks"]),
    viewArguments: all.get("viewArguments", []),
    sourceMap: all.get("sourceMap", {}),
    viewerAddress: all.get("viewerAddress", ""),
    hasCodeLens: all.get("codeLens", false),
    threshold: all.get("hotLines.threshold", 1) / 100,
  };
}
