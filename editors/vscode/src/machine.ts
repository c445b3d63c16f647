// What differs between an editor that can start programs and one that cannot, as one in a browser.

import type { Uri } from "vscode";

/** A viewer that serves a run. */
export interface Viewer {
  /** Its address, with the token. */
  readonly address: string;
  /** Calls back when it ends by itself, with what it said. */
  readonly onEnd: (then: (why: string) => void) => void;
  readonly dispose: () => void;
}

/** The results of a run that hot lines are made of, as the command prints them. */
export interface LineResults {
  readonly sourceLines: string;
  /** Null where it is not known. */
  readonly stepBreakdown: string | null;
}

/** What the machine does on which the extension runs. */
export interface Machine {
  readonly canRecord: boolean;
  /** Has a viewer serve a run folder or a trace file. */
  readonly startViewer: (target: Uri) => Promise<Viewer>;
  readonly lineResults: (target: Uri) => Promise<LineResults>;
  /** Records a Python file; the run's folder once that has ended, undefined when there is none. */
  readonly record: (file: Uri) => Promise<Uri | undefined>;
}
