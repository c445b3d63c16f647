/** A line of a file. */
export interface SourcePlace {
  readonly file: string;
  readonly line: number;
}

/** Where the innermost frame with a file is; a stack is `file(line): function` joined by `;`, the innermost first. */
export function firstPlace(stack: string): SourcePlace | null {
  for (const frame of stack.split(";")) {
    const [, file, line] = /^(.+)\((\d{1,9})\): /.exec(frame) ?? [];
    if (file && line && !/^<.*>$/.test(file)) return { file, line: Number(line) };
  }
  return null;
}
