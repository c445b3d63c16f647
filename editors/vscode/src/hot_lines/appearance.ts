// How a hot line looks.

import {
  CodeLens,
  type DecorationOptions,
  MarkdownString,
  OverviewRulerLane,
  Range,
  type TextDocument,
  ThemeColor,
  window,
} from "vscode";
import type { HotLine, HotLines } from "./hot_lines";
import { detailWords, lineWords } from "./words";

/** Behind the line, and as a mark beside the scroll bar. */
export const decoration = () =>
  window.createTextEditorDecorationType({
    after: { color: new ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 3em" },
    overviewRulerColor: new ThemeColor("charts.orange"),
    overviewRulerLane: OverviewRulerLane.Right,
  });

/** The words behind each line, with the details on hover. */
export const decorationsOf = (document: TextDocument, lines: readonly HotLine[], of: HotLines): DecorationOptions[] =>
  lines.map((line) => ({
    range: document.lineAt(line.line - 1).range,
    renderOptions: { after: { contentText: lineWords(line, of) } },
    hoverMessage: new MarkdownString().appendText(detailWords(line, of).join("\n")),
  }));

/** The same words above each line. They lead nowhere. */
export const lensesOf = (document: TextDocument, lines: readonly HotLine[], of: HotLines): CodeLens[] =>
  lines.map((line) => {
    const { range } = document.lineAt(line.line - 1);
    return new CodeLens(new Range(range.start, range.start), { title: lineWords(line, of), command: "" });
  });
