// Profiling, measuring, tuning: asks the server, shows its progress in a notification that can be cancelled, and then
// the results with what to do next.
import * as path from "node:path";
import * as vscode from "vscode";
import { ErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { LanguageClient } from "vscode-languageclient/node";
import * as interpreter from "./interpreter";
import * as protocol from "./protocol";
import { goTo } from "./results";
import type { Server } from "./server";

/** The last profile was cancelled: its script may still be ending, and the next one waits for that unasked. */
let ending = false;

/** Profile what the parameters name. Results arrive by themselves; what went wrong is shown with its remedies. */
export async function profile(server: Server, params: protocol.ProfileParams): Promise<protocol.ProfileResult | null> {
  const uri = params.uri === undefined ? undefined : vscode.Uri.parse(params.uri);
  await save(uri);
  // A configuration, or an earlier run, may name its own.
  const named = params.again !== undefined || params.launch?.python !== undefined;
  const python = params.python ?? (named ? undefined : await interpreter.forScripts(uri));
  const what = params.launch?.name ?? params.module ?? (uri === undefined ? "the script" : path.basename(uri.fsPath));
  const request = { ...params, ...(python === undefined ? {} : { python }) };
  if (ending) request.whenBusy = "queue";
  const ask = (client: LanguageClient, token: vscode.CancellationToken): Promise<protocol.ProfileResult | null> =>
    client.sendRequest(protocol.profile, request, token);
  const result = await cancellable(server, `Profiling ${what}`, params.uri, ask, async (refusal) => {
    if (refusal.data?.reason !== "busy") return undefined;
    const choice = await vscode.window.showWarningMessage(refusal.message, "Profile It Afterwards");
    return choice === undefined ? undefined : profile(server, { ...request, whenBusy: "queue" });
  });
  if (result?.summary !== undefined) void ended(result);
  return result;
}

/** What came out, and the way there: the line is often in a file that is not open. */
async function ended({ script, summary, best }: protocol.ProfileResult): Promise<void> {
  const there = best === null ? [] : [`Go to ${best.name}`];
  const choice = await vscode.window.showInformationMessage(`${path.basename(script)}: ${summary}`, ...there, "Show Findings");
  if (choice === "Show Findings") await vscode.commands.executeCommand("warpline.results.focus");
  else if (choice !== undefined && best !== null) await goTo(best);
}

/** Time the script with a finding's fix and without, say what it gains, and offer to apply it. */
export async function measure(server: Server, params: protocol.MeasureParams): Promise<protocol.Measured | null> {
  const measured = await cancellable(server, "Measuring the fix", params.uri, (client, token) =>
    client.sendRequest(protocol.measure, params, token),
  );
  if (measured !== null) void measuredSo(server, params, measured);
  return measured;
}

async function measuredSo(server: Server, params: protocol.MeasureParams, { summary, kept, applied }: protocol.Measured): Promise<void> {
  const choice = await vscode.window.showInformationMessage(applied ? `${summary}. Applied.` : summary, ...(applied || !kept ? [] : ["Apply"]));
  if (choice === "Apply") await applyFix(server, params);
}

export async function applyFix(server: Server, params: protocol.MeasureParams): Promise<void> {
  const client = await server.ready();
  if (client === undefined) return;
  const applied = await client.sendRequest(protocol.apply, params).catch(() => false);
  if (!applied) void vscode.window.showWarningMessage("The fix does not fit the text any more. Profile the file again.");
}

/** Search for the best set of fixes, and apply what is proven. */
export async function tune(server: Server, uri: string): Promise<void> {
  for (const document of vscode.workspace.textDocuments) await save(document.uri);
  const tuned = await cancellable(server, "Searching for the best set of fixes", uri, (client, token) =>
    client.sendRequest(protocol.tune, { uri, apply: true }, token),
  );
  if (tuned !== null) void vscode.window.showInformationMessage(tuned.applied ? `${tuned.summary}. Applied; one undo per file takes it back.` : tuned.summary);
}

async function save(uri: vscode.Uri | undefined): Promise<void> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri?.toString());
  if (open?.isDirty && !open.isUntitled) await open.save();
}

/** The server ended meanwhile; its restart shows a message. */
const LOST: number[] = [ErrorCodes.PendingResponseRejected, ErrorCodes.ConnectionInactive];

type Refusal = ResponseError<protocol.Refusal | undefined>;

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
      let percent = 0;
      const listener = server.onProgress((at) => {
        if (uri !== undefined && at.uri !== uri) return;
        const now = Math.max(percent, at.percent ?? 0);
        progress.report({ message: `${now} % · ${at.message !== "" ? at.message : at.stage}`, increment: now - percent });
        percent = now;
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

/** What went wrong in its one line, with a button for each remedy. */
async function explain(refusal: Refusal): Promise<void> {
  const remedies = refusal.data?.remedies ?? [];
  const choice = await vscode.window.showErrorMessage(refusal.message, ...remedies.map(({ title }) => title));
  const remedy = remedies.find(({ title }) => title === choice);
  if (remedy !== undefined) await vscode.commands.executeCommand(remedy.command, ...(remedy.arguments ?? []));
}
