// The hot lines that are shown: of which run, and in which files.

import { type TextDocument, type Uri, workspace } from "vscode";
import type { Machine } from "../machine";
import { settings } from "../settings";
import { certainFile } from "../source/open_line";
import { recordedMs } from "../targets";
import { Trouble } from "../trouble";
import { whyStale } from "./freshness";
import { atLeast, type HotLine, type HotLines, hotLinesOf } from "./hot_lines";

/** The lines of a document; none, with a reason, where it is no longer what was recorded. */
export interface DocumentLines {
  readonly lines: readonly HotLine[];
  readonly why: string | null;
}

const NOTHING: DocumentLines = { lines: [], why: null };

/** The hot lines of one run. */
export class RunLines {
  /** Documents that were edited since. */
  readonly #edited = new Set<string>();

  private constructor(
    readonly hot: HotLines,
    readonly recordedMs: number,
  ) {}

  /** Has the lines of a run computed. */
  static async of(target: Uri, machine: Machine): Promise<RunLines> {
    const recorded = await recordedMs(target);
    const results = await machine.lineResults(target);
    const hot = hotLinesOf(results.sourceLines, results.stepBreakdown);
    if (hot.lines.length > 0) return new RunLines(hot, recorded);
    const hint = "Record with `--stacks`, or with `with_stack=True` of `torch.profiler`.";
    throw new Trouble("the run has no call stacks, so its lines are not known", hint, target.path);
  }

  edited(document: TextDocument): void {
    this.#edited.add(document.uri.toString());
  }

  /** The lines of the document that take at least the share that is set. */
  async in(document: TextDocument): Promise<DocumentLines> {
    const named = await this.#named(document);
    if (named.length === 0) return NOTHING;
    const why = whyStale({
      recordedMs: this.recordedMs,
      changedMs: (await workspace.fs.stat(document.uri)).mtime,
      isEdited: document.isDirty || this.#edited.has(document.uri.toString()),
    });
    if (why !== null) return { lines: [], why };
    const { lines } = atLeast({ ...this.hot, lines: named }, settings().threshold);
    return { lines: lines.filter(({ line }) => line <= document.lineCount), why: null };
  }

  /** The lines of the file that the document is, where it is certain which one that is. */
  async #named(document: TextDocument): Promise<readonly HotLine[]> {
    const name = document.uri.path.split("/").at(-1);
    const alike = this.hot.lines.filter(({ file }) => file.split("/").at(-1) === name);
    for (const file of new Set(alike.map((line) => line.file))) {
      const uri = await certainFile(file);
      if (uri?.toString() === document.uri.toString()) return alike.filter((line) => line.file === file);
    }
    return [];
  }
}
