// Profiling and measuring: ask the server, show its progress in a notification that can be cancelled.
import * as path from "node:path";
import * as vscode from "vscode";
import { ErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { LanguageClient } from "vscode-languageclient/node";
import * as interpreter from "./interpreter";
import * as protocol from "./protocol";
import type { Server } from "./server";
import { times } from "./words";

/** The last profile was cancelled: its script may still be ending, and the next one waits for that unasked. */
let ending = false;

/** Profile what the parameters name. Results arrive by themselves; what went wrong is shown with its remedy. */
export async function profile(server: Server, params: protocol.ProfileParams): Promise<protocol.ProfileResult | null> {
  const uri = params.uri === undefined ? undefined : vscode.Uri.parse(params.uri);
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri?.toString());
  if (open?.isDirty && !open.isUntitled) await open.save();
  const python = params.python ?? (await interpreter.forScripts(uri));
  const what = params.module ?? (uri === undefined ? "the script" : path.basename(uri.fsPath));
  const request = { ...params, ...(python === undefined ? {} : { python }) };
  if (ending) request.whenBusy = "queue";
  const ask = (client: LanguageClient, token: vscode.CancellationToken): Promise<protocol.ProfileResult | null> =>
    client.sendRequest(protocol.profile, request, token);
  return cancellable(server, `Profiling ${what}`, params.uri, ask, async (refusal) => {
    if (refusal.data?.reason !== "busy") return undefined;
    const choice = await vscode.window.showWarningMessage(refusal.message, "Profile It Afterwards");
    return choice === undefined ? undefined : profile(server, { ...request, whenBusy: "queue" });
  });
}

/** Time the script with a finding's fix and without, and say what it gains. */
export async function measure(server: Server, params: protocol.MeasureParams): Promise<protocol.Measured | null> {
  const measured = await cancellable(server, "Measuring the fix", params.uri, (client, token) =>
    client.sendRequest(protocol.measure, params, token),
  );
  if (measured !== null) {
    const { speedup, low, high, applied } = measured;
    const range = `${low.toFixed(2)} to ${high.toFixed(2)}`;
    void vscode.window.showInformationMessage(`With the fix: ${times(speedup)} as fast (${range})${applied ? ". It is applied." : "."}`);
  }
  return measured;
}

/** The server ended meanwhile, of which its restart tells. */
const LOST: number[] = [ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive];

type Refusal = ResponseError<protocol.ProfileRefusal | undefined>;

async function cancellable<R>(
  server: Server,
  title: string,
  uri: string | undefined,
  request: (client: LanguageClient, token: vscode.CancellationToken) => Promise<R>,
  instead: (refusal: Refusal) => Promise<R | undefined> = () => Promise.resolve(undefined),
): Promise<R | null> {
  const client = await server.ready();
  if (client === undefined) return null;
  const refusal = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title, cancellable: true },
    async (progress, token) => {
      const listener = client.onNotification(protocol.progress, (at) => {
        if (uri === undefined || at.uri === uri) progress.report({ message: at.message !== "" ? at.message : at.stage });
      });
      token.onCancellationRequested(() => (ending = true));
      try {
        const answer = await request(client, token);
        ending = false;
        return answer;
      } catch (error) {
        if (token.isCancellationRequested || error instanceof vscode.CancellationError) return null;
        return error instanceof ResponseError ? (error as Refusal) : new ResponseError(0, String(error), undefined);
      } finally {
        listener.dispose();
      }
    },
  );
  if (!(refusal instanceof ResponseError)) return refusal;
  const other = await instead(refusal);
  if (other !== undefined) return other;
  if (refusal.data?.reason !== "busy" && !LOST.includes(refusal.code)) void explain(refusal);
  return null;
}

/** What went wrong in its one line, with a button where the server knows a remedy. */
async function explain(refusal: Refusal): Promise<void> {
  const remedy = refusal.data?.remedy;
  const choice = await vscode.window.showErrorMessage(refusal.message, ...(remedy === undefined ? [] : [remedy.title]));
  if (choice !== undefined && remedy !== undefined) {
    const own = vscode.commands.executeCommand(remedy.command, ...(remedy.arguments ?? []));
    // The server thinks of the Python extension's command; without that extension the setting is the way.
    await own.then(undefined, () => vscode.commands.executeCommand("workbench.action.openSettings", "warpline.python"));
  }
}
