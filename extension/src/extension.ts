// A thin client: it starts the server and shows what the server says where LSP has no place for it.
import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import * as commands from "./commands";
import { Heat } from "./heat";
import { measure, profile } from "./profile";
import type * as protocol from "./protocol";
import { Results } from "./results";
import { Server } from "./server";

let server: Server | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  // Starting the server may run an interpreter that the workspace names: nothing before the workspace is trusted.
  if (!vscode.workspace.isTrusted) {
    context.subscriptions.push(vscode.workspace.onDidGrantWorkspaceTrust(() => void begin(context)));
    return;
  }
  await begin(context);
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}

async function begin(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Warpline", { log: true });
  const middleware: Middleware = {
    // Lenses and actions of the server: these two run long, and here they can have a cancel button.
    executeCommand: (command, args: unknown[], next) => {
      const [first] = args;
      if (command === "warpline.profile") {
        return profile(here, typeof first === "string" ? { uri: first } : (first as protocol.ProfileParams));
      }
      // Of the lenses with totals.
      if (command === "warpline.overview") return vscode.commands.executeCommand("warpline.results.focus");
      if (command === "warpline.measure") return measure(here, first as protocol.MeasureParams);
      return next(command, args) as unknown;
    },
    window: {
      // A rule's page is Markdown to be read, not to be edited.
      showDocument: async (params, token, next) => {
        if (!params.uri.endsWith(".md")) return next(params, token);
        await vscode.commands.executeCommand("markdown.showPreview", vscode.Uri.parse(params.uri));
        return { success: true };
      },
    },
  };
  const here = new Server(context, log, middleware);
  server = here;
  const heat = new Heat(here);
  const results = new Results(here);
  context.subscriptions.push(
    log,
    heat,
    results,
    ...commands.register(here, log),
    here.onChanged(() => {
      const { capabilities } = here.running?.initializeResult ?? {};
      const offered = capabilities?.experimental as { warpline?: { measure?: boolean } } | undefined;
      void vscode.commands.executeCommand("setContext", "warpline.canMeasure", offered?.warpline?.measure === true);
      heat.refresh();
      void results.refresh();
    }),
    vscode.window.onDidChangeActiveTextEditor(() => void results.refresh()),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("warpline.server")) void here.restart();
    }),
  );
  await here.start();
}
