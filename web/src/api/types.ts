// The answers of the HTTP interface, as docs/http-api.md describes them.

/** A number as the server said it; see `parseExact`. */
export type Num = number | bigint;

/** One value of a result; `null` is "not known". */
export type Cell = string | Num | boolean | null;

/** `number` is that of a query's number of which nothing is known; no analysis has it. */
export type Unit = "text" | "count" | "id" | "ns" | "bytes" | "bytes_per_s" | "ratio" | "plain" | "flag" | "number";

/** What the server says of itself. */
export interface About {
  readonly version: string;
  /** What opens an editor, with `{file}` and `{line}` in it. */
  readonly editor: string | null;
  /** Whether the program that runs SQL is installed. */
  readonly sql: boolean;
}

export interface RunSummary {
  /** Its place in the list. */
  readonly id: number;
  /** What names it in links. */
  readonly key: string;
  readonly name: string;
  readonly path: string;
  /** `waiting` for somebody to ask for it. */
  readonly state: "waiting" | "loading" | "ready" | "failed";
  readonly progress: { readonly done_bytes: Num; readonly total_bytes: Num | null } | null;
  readonly error: ErrorBody | null;
  readonly version: number | null;
  readonly is_live: boolean;
  /** True when its file or folder is there no more. */
  readonly is_gone: boolean;
}

export interface ErrorBody {
  readonly what: string;
  readonly where?: string | null;
  readonly hint?: string | null;
}

export interface StepOfRun {
  readonly rank: number;
  readonly number: Num;
  readonly start_ns: Num;
  readonly end_ns: Num;
  readonly source: string;
  readonly is_complete: boolean;
}

/** Which steps there are; the steps of a rank are an answer of their own. */
export interface StepsOfRun {
  readonly count: number;
  /** The first rank that has any. */
  readonly first_rank: number | null;
  /** The numbers that steps have on any rank, as ranges with both ends. */
  readonly numbers: readonly (readonly [first: Num, last: Num])[];
}

export type Has =
  | "devices"
  | "memory"
  | "shapes"
  | "stacks"
  | "modules"
  | "python"
  | "source"
  | "stack_samples"
  | "io"
  | "collectives"
  | "counters";

export interface RunDetail {
  readonly id: number;
  readonly version: number;
  readonly run: RunIdentity;
  readonly span: { readonly start_ns: Num; readonly end_ns: Num } | null;
  readonly start_unix_ns: Num | null;
  readonly ranks: readonly {
    readonly rank: number;
    readonly host: string | null;
    readonly pid: Num | null;
    readonly name: string | null;
  }[];
  readonly steps: StepsOfRun;
  readonly devices: readonly {
    readonly rank: number;
    readonly ordinal: Num;
    readonly name: string | null;
    readonly memory_bytes: Num | null;
  }[];
  readonly facts: readonly (readonly [string, string])[];
  readonly counts: Readonly<Record<string, Num>>;
  readonly has: Readonly<Record<Has, boolean>>;
  /** False where events do not fit into memory: then the timeline shows the collectives of all ranks, or one rank. */
  readonly shows_all: boolean;
}

export interface RunIdentity {
  readonly name: string;
  readonly ranks: readonly number[];
  readonly sources: readonly string[];
}

export interface AnalysisInfo {
  readonly name: string;
  readonly definition: string;
  readonly sections: Readonly<Record<string, string>>;
  /** The columns of a result without options. */
  readonly columns: readonly { readonly name: string }[];
  readonly accepts: {
    readonly group_by: readonly string[];
    readonly compat: readonly string[];
    readonly bucket: boolean;
    readonly tree: boolean;
  };
}

export interface Column {
  readonly name: string;
  readonly label: string;
  readonly unit: Unit;
  readonly doc: string;
  readonly is_right_aligned: boolean;
  readonly has_answers: boolean;
}

export type Row = Readonly<Record<string, Cell>>;

export interface Finding {
  readonly code: string;
  readonly severity: "info" | "suspect" | "severe";
  readonly count: Num;
  readonly says: string;
  readonly examples: readonly string[];
}

export interface Envelope {
  readonly schema: string;
  readonly analysis: string;
  readonly definition: string;
  readonly run: RunIdentity;
  readonly results: readonly Row[];
  readonly coverage: { readonly device_ns_linked_ratio: number | null };
  readonly findings: readonly Finding[];
  readonly columns: readonly Column[];
  readonly page: {
    readonly offset: number;
    readonly rows: number;
    readonly matching: number;
    readonly total: number;
    /** How many of these rows stand for others. */
    readonly matching_sums: number;
    readonly total_sums: number;
  };
}

export interface Breakdown {
  readonly total_ns: Num;
  readonly parts: readonly { readonly class: string; readonly ns: Num; readonly ratio: number }[];
}

export interface Advice {
  readonly rank: number | null;
  readonly device: Num | null;
  readonly rule: string;
  readonly fault: string;
  readonly priority: "high" | "medium" | "low";
  readonly gain_ns: Num | null;
  /** 0 of an upper bound. */
  readonly gain_low_ns: Num | null;
  /** Null of a lower bound. */
  readonly gain_high_ns: Num | null;
  /** The range of the gain with its share, as every report says it. */
  readonly gain_says: string;
  /** A forecast, a lower bound or an upper bound, and of what; null where the gain is not known. */
  readonly gain_method: string | null;
  readonly says: string;
  readonly to_do: string;
  /** The change, where it is mechanical. */
  readonly diff: string | null;
  readonly disproof: string;
  readonly evidence: string;
  readonly start_ns: Num | null;
  readonly slice: string | null;
  readonly line: string | null;
  readonly others: number;
}

export interface StepTime {
  readonly rank: number;
  readonly step: Num;
  readonly total_ns: Num;
  readonly is_complete: boolean;
}

/** Which rules of advice were judged, and what the recording lacks for the others. */
export interface Coverage {
  readonly rules_judged: number;
  readonly rules_not_judged: number;
  readonly not_judged: readonly { readonly lacks: string; readonly rules: readonly string[] }[];
}

export interface Report {
  readonly run: RunIdentity;
  readonly rank: number | null;
  readonly step: Num | null;
  readonly verdict: readonly string[];
  readonly advice: readonly Advice[];
  readonly coverage: Coverage;
  readonly span_ns: Num | null;
  readonly environment: readonly { readonly name: string; readonly value: string }[];
  readonly processes: readonly {
    readonly rank: number;
    readonly pid: Num | null;
    readonly name: string;
    readonly is_helper: boolean;
  }[];
  readonly steps: {
    readonly source: string;
    readonly count: number;
    readonly incomplete_count: number;
    readonly mean_ns: Num;
    readonly min_ns: Num;
    readonly max_ns: Num;
    readonly slowest: StepTime;
    readonly steps: readonly StepTime[];
  } | null;
  readonly step_breakdown: Breakdown | null;
  readonly devices: readonly {
    readonly rank: number;
    readonly device: Num;
    readonly name: string | null;
    readonly device_events: Num;
    readonly overlap_ratio: number | null;
    readonly breakdown: Breakdown;
  }[];
  readonly findings: readonly Finding[];
  readonly next: readonly { readonly command: string; readonly shows: string }[];
}

export type QueryType = "text" | "int" | "float" | "flag" | "time" | "list" | "other";

/** A column of a query's answer, or of a table that queries are about. */
export interface QueryColumn {
  readonly name: string;
  readonly type: QueryType;
  /** Null where it is not known. */
  readonly unit: string | null;
  readonly doc: string | null;
}

/** The answer to a query: rows have a value for each column, in their order. Lists are lists of values. */
export interface QueryAnswer {
  readonly columns: readonly QueryColumn[];
  readonly rows: readonly (readonly unknown[])[];
  /** False where there are more rows. */
  readonly is_complete: boolean;
  /** The number by which to ask for those that follow, for some minutes. */
  readonly rest?: number;
}

/** What queries can be about. */
export interface QuerySchema {
  readonly tables: readonly {
    readonly name: string;
    /** What a row is. */
    readonly row: string;
    readonly columns: readonly QueryColumn[];
  }[];
  readonly functions: readonly { readonly name: string; readonly call: string; readonly doc: string | null }[];
  readonly examples: readonly { readonly title: string; readonly sql: string }[];
}
