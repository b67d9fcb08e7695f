// The page of a run beside the code. The server writes it, and its own policy lets only its own script run and nothing be
// loaded. A click on a line in it opens the file there.
import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import * as environment from "./environment";
import * as protocol from "./protocol";
import { goTo } from "./results";
import type { Server } from "./server";

export class ReportPage implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private run = "";

  constructor(private readonly server: Server) {}

  /** The page of the run of a file (of the newest run where none is given), in the panel that is there or a new one. */
  async show(params: { run?: string; uri?: string }): Promise<void> {
    const client = await this.server.ready();
    if (client === undefined) return;
    try {
      const made = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "Warpline: making the report" }, () =>
        client.sendRequest(protocol.page, params),
      );
      if (made === null) void vscode.window.showInformationMessage("There is no run yet. Profile a script first.");
      else this.open(made, await fs.readFile(made.file, "utf8"));
    } catch (error) {
      void vscode.window.showErrorMessage(`The report could not be made: ${environment.message(error)}`);
    }
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private open({ run, script }: protocol.Page, html: string): void {
    this.run = run;
    const panel = (this.panel ??= this.make());
    panel.title = `Report: ${path.basename(script)}`;
    panel.webview.html = html;
    panel.reveal(undefined, true);
  }

  private make(): vscode.WebviewPanel {
    const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const options = { enableScripts: true, enableFindWidget: true, retainContextWhenHidden: true, localResourceRoots: [] };
    const panel = vscode.window.createWebviewPanel("warpline.report", "Report", where, options);
    panel.onDidDispose(() => (this.panel = undefined));
    panel.webview.onDidReceiveMessage((message: unknown) => void this.clicked(message));
    return panel;
  }

  /** Only what the server knows as a line of the run is opened, where it stands now. */
  private async clicked(message: unknown): Promise<void> {
    const { file, line } = (message ?? {}) as { file?: unknown; line?: unknown };
    if (typeof file !== "string" || typeof line !== "number") return;
    const place = await this.server.running?.sendRequest(protocol.place, { run: this.run, file, line }).catch(() => null);
    if (place) await goTo(place, this.beside());
    else void vscode.window.setStatusBarMessage("Warpline: this line is not in the file any more, or another run is shown", 5_000);
  }

  /** The column of an editor that does not hide the page. */
  private beside(): vscode.ViewColumn {
    const own = this.panel?.viewColumn;
    const other = vscode.window.tabGroups.all.find(({ viewColumn }) => viewColumn !== own);
    return other?.viewColumn ?? vscode.ViewColumn.Beside;
  }
}
