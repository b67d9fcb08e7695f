// Heat: a bar in the margin beside each costly line, longer and redder the more of the step it takes, and a mark in
// the overview ruler. Grey where the line was changed since it was measured.
import * as vscode from "vscode";
import type { Server } from "./server";
import * as protocol from "./protocol";

/** Shares of the step from which a line has the next hotter colour. Below the first it is left blank. */
const STEPS = [0.005, 0.02, 0.05, 0.1, 0.25];
const COLOURS = ["#f5c542", "#f5a142", "#f57d3d", "#ec5335", "#d7263d"];
/** Share from which a line's time is written behind it where inlay hints are off. */
const SHOWN = 0.01;
const STALE = "#8a8a8a";
/** After the last key stroke, the time until the bars are asked for again; meanwhile they move with their lines. */
const SETTLE_MS = 200;

export class Heat implements vscode.Disposable {
  private readonly levels = COLOURS.map((colour, level) => decoration(colour, level));
  private readonly stale = decoration(STALE, 0);
  private readonly cellLevels = COLOURS.map(cellDecoration);
  private readonly cellStale = cellDecoration(STALE, 0);
  /** The times at the ends of lines, for those who turned inlay hints off for the whole editor. */
  private readonly times = vscode.window.createTextEditorDecorationType({});
  private readonly waiting = new Map<string, NodeJS.Timeout>();
  private readonly listeners: vscode.Disposable[];

  constructor(private readonly server: Server) {
    this.listeners = [
      vscode.window.onDidChangeVisibleTextEditors(() => this.refresh()),
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => this.soon(textEditor.document)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.soon(document)),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("warpline.heat") || change.affectsConfiguration("editor.inlayHints")) this.refresh();
      }),
    ];
  }

  refresh(): void {
    for (const editor of vscode.window.visibleTextEditors) void this.show(editor);
  }

  dispose(): void {
    for (const timer of this.waiting.values()) clearTimeout(timer);
    for (const item of [...this.listeners, ...this.levels, this.stale, ...this.cellLevels, this.cellStale, this.times]) item.dispose();
  }

  private soon(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    clearTimeout(this.waiting.get(key));
    const again = (): void => {
      this.waiting.delete(key);
      for (const editor of vscode.window.visibleTextEditors) if (editor.document === document) void this.show(editor);
    };
    this.waiting.set(key, setTimeout(again, SETTLE_MS));
  }

  private async show(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const inCell = document.uri.scheme === "vscode-notebook-cell";
    if (document.languageId !== "python" || (document.uri.scheme !== "file" && !inCell)) return;
    const wanted = vscode.workspace.getConfiguration("warpline", document.uri).get<boolean>("heat.enabled", true);
    const uri = document.uri.toString();
    const [first, last] = around(editor);
    const answer = wanted ? await this.server.running?.sendRequest(protocol.heat, { uri, first, last }).catch(() => undefined) : null;
    // Undefined: no server to ask, so what is shown stays. An answer about an older text is not for this one.
    if (answer === undefined || (answer !== null && answer.version !== null && answer.version !== document.version)) return;
    const lines = answer?.lines ?? [];
    const ranges = (chosen: protocol.HeatResult["lines"]): vscode.Range[] => chosen.map(({ line }) => new vscode.Range(line, 0, line, 0));
    editor.setDecorations(this.times, timesFor(editor, lines));
    const [levels, stale] = inCell ? [this.cellLevels, this.cellStale] : [this.levels, this.stale];
    editor.setDecorations(stale, ranges(lines.filter((line) => line.stale)));
    const level = (share: number): number => STEPS.filter((step) => share >= step).length - 1;
    for (const [index, type] of levels.entries()) {
      editor.setDecorations(type, ranges(lines.filter((line) => !line.stale && level(line.share) === index)));
    }
  }
}

/** The lines on screen and as many above and below them: scrolling a little shows no gap. */
function around({ visibleRanges, document }: vscode.TextEditor): [number, number] {
  const first = Math.min(...visibleRanges.map(({ start }) => start.line), document.lineCount);
  const last = Math.max(...visibleRanges.map(({ end }) => end.line), 0);
  const height = Math.max(last - first, 40);
  return [Math.max(first - height, 0), last + height];
}

function timesFor({ document }: vscode.TextEditor, lines: protocol.HeatResult["lines"]): vscode.DecorationOptions[] {
  const off = vscode.workspace.getConfiguration("editor", document).get<string>("inlayHints.enabled") === "off";
  const wanted = vscode.workspace.getConfiguration("warpline", document.uri).get<boolean>("hints.enabled", true);
  if (!off || !wanted) return [];
  const color = new vscode.ThemeColor("editorCodeLens.foreground");
  return lines
    .filter(({ line, share }) => share >= SHOWN && line < document.lineCount)
    .map(({ line, label }) => ({
      range: document.lineAt(line).range,
      renderOptions: { after: { contentText: label, margin: "0 0 0 2em", color } },
    }));
}

function decoration(colour: string, level: number): vscode.TextEditorDecorationType {
  const width = 3 + 2 * level;
  const bar = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><rect x="${15 - width}" width="${width}" height="16" fill="${colour}"/></svg>`;
  return vscode.window.createTextEditorDecorationType({
    gutterIconPath: vscode.Uri.parse(`data:image/svg+xml;base64,${Buffer.from(bar).toString("base64")}`),
    gutterIconSize: "contain",
    overviewRulerColor: colour,
    overviewRulerLane: vscode.OverviewRulerLane.Right,
  });
}

/** The cells of a notebook have no margin: their bars are at the left of the lines. */
function cellDecoration(colour: string, level: number): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({ isWholeLine: true, borderStyle: "solid", borderColor: colour, borderWidth: `0 0 0 ${2 + level}px` });
}
