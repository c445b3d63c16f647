// Moments that a person has marked, each with a note that may be empty.

export interface Mark {
  readonly time_ns: number;
  readonly note: string;
}

/** Characters of a note that are kept: it stands in the address. */
export const NOTE_LENGTH = 200;

/** By time: a mark's number is its place among them. */
export const inOrder = (marks: readonly Mark[]): Mark[] => [...marks].sort((one, other) => one.time_ns - other.time_ns);

/** With a mark at a time, or without those that are within `reach_ns` of it. */
export function toggled(marks: readonly Mark[], time_ns: number, reach_ns: number): readonly Mark[] {
  const others = marks.filter((mark) => Math.abs(mark.time_ns - time_ns) > reach_ns);
  return others.length < marks.length ? others : [...marks, { time_ns: Math.max(Math.round(time_ns), 0), note: "" }];
}

/** With another note at the mark of this time. */
export const noted = (marks: readonly Mark[], time_ns: number, note: string): readonly Mark[] =>
  marks.map((mark) => (mark.time_ns === time_ns ? { ...mark, note } : mark));

/** Without the mark of this time. */
export const unmarked = (marks: readonly Mark[], time_ns: number): readonly Mark[] =>
  marks.filter((mark) => mark.time_ns !== time_ns);
