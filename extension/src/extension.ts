// A thin client: it starts the server and shows what the server says where LSP has no place for it.
import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import * as commands from "./commands";
import { Heat } from "./heat";
import * as launch from "./launch";
import { measure, profile, tune } from "./profile";
import type * as protocol from "./protocol";
import { ReportPage } from "./report";
import { Results } from "./results";
import { Runs } from "./runs";
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
      if (command === "warpline.tune") return tune(here, (first as { uri: string }).uri);
      return next(command, args) as unknown;
    },
    // Beside the lens that profiles the file: the arguments it says can be changed there.
    provideCodeLenses: async (document, token, next) => {
      const lenses = (await next(document, token)) ?? [];
      const at = lenses.findIndex(({ command }) => command?.command === "warpline.profile");
      const [range] = lenses.slice(Math.max(at, 0)).map((lens) => lens.range);
      if (at < 0 || range === undefined || document.uri.scheme !== "file") return lenses;
      const change = { title: "Arguments…", command: "warpline.profileFileWithArguments", arguments: [document.uri] };
      return [...lenses.slice(0, at + 1), new vscode.CodeLens(range, change), ...lenses.slice(at + 1)];
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
  const runs = new Runs(here);
  const report = new ReportPage(here);
  context.subscriptions.push(
    log,
    heat,
    results,
    runs,
    report,
    ...commands.register(here, log, results, runs, report),
    here.onChanged(() => {
      const { capabilities } = here.running?.initializeResult ?? {};
      const offered = capabilities?.experimental as { warpline?: { measure?: boolean } } | undefined;
      void vscode.commands.executeCommand("setContext", "warpline.canMeasure", offered?.warpline?.measure === true);
      heat.refresh();
      void results.refresh();
      void runs.refresh();
    }),
    vscode.workspace.onDidOpenTextDocument((document) => void startFor(here, [document])),
    vscode.window.onDidChangeActiveTextEditor(() => void results.refresh(true)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("warpline.server")) void here.restart(false);
      if (change.affectsConfiguration("launch")) offerLaunch();
    }),
  );
  offerLaunch();
  await startFor(here, vscode.workspace.textDocuments);
}

/** "Profile a Launch Configuration" is there where there is one. */
function offerLaunch(): void {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const some = [undefined, ...folders.map(({ uri }) => uri)].some((uri) => launch.configurations(uri).length > 0);
  void vscode.commands.executeCommand("setContext", "warpline.hasLaunch", some);
}

/** Start the server where it has something to say: a folder with runs, or a script that uses torch. Opening any other
 *  Python file starts nothing, and nothing is ever downloaded before something is profiled. */
async function startFor(here: Server, documents: readonly vscode.TextDocument[]): Promise<void> {
  if (here.running !== undefined) return;
  const folders = vscode.workspace.workspaceFolders ?? [];
  const runs = folders.map(({ uri }) => vscode.workspace.fs.stat(vscode.Uri.joinPath(uri, ".warpline", "runs")).then(() => true, () => false));
  const known = (await Promise.all(runs)).includes(true);
  const trains = documents.some((document) => document.languageId === "python" && TORCH.test(document.getText()));
  if (known || trains) await here.start(false);
}

/** As server/warpline/lsp/state/torch_use.py has it. */
const TORCH = /^\s*(?:import|from)\s+(?:torch\w*|lightning|pytorch_lightning|transformers|accelerate|diffusers|timm|peft|trl|fastai|ultralytics|ignite)\b/m;

