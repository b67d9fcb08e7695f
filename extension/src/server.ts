// Starting, restarting and losing the language server, without ever nagging about it.
import * as fs from "node:fs/promises";
import * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, State, TransportKind } from "vscode-languageclient/node";
import type { LanguageClientOptions, Middleware } from "vscode-languageclient/node";
import * as environment from "./environment";
import * as protocol from "./protocol";

/** A second death within this time is not followed by a restart but by the one question whether to. */
const RESTART_WITHIN_MS = 60_000;

/** Reports to the log only: a broken pipe or a failed request is no reason for a popup. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private lastDeath = -Infinity;
  private starting: Promise<void> | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  /** What the server would answer has changed: it was (re)started, or has new results. */
  readonly onChanged = this.changed.event;
  private readonly progressed = new vscode.EventEmitter<protocol.Progress>();
  /** How far anything is. The client holds one listener for each notification: a second one would take its place. */
  readonly onProgress = this.progressed.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly middleware: Middleware,
  ) {}

  /** The running client; undefined while there is none. */
  get running(): LanguageClient | undefined {
    return this.client?.isRunning() ? this.client : undefined;
  }

  /** The running client, started if need be; undefined when that fails, which the user has then been told. */
  async ready(): Promise<LanguageClient | undefined> {
    if (this.running === undefined) await this.start(true);
    return this.running;
  }

  /** `install`: make the server's environment where there is none, which may download it. */
  async start(install: boolean): Promise<void> {
    if (this.starting !== undefined) await this.starting;
    if (this.running !== undefined) return;
    this.starting ??= this.tryStart(install).finally(() => (this.starting = undefined));
    return this.starting;
  }

  async restart(install = true): Promise<void> {
    await this.dispose();
    await this.start(install);
  }

  async dispose(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch((error: unknown) => this.log.info(`stopping: ${environment.message(error)}`));
  }

  private async tryStart(install: boolean): Promise<void> {
    try {
      const program = await environment.program(this.context, this.log, install);
      if (program === undefined) return; // it is made when something is to be profiled
      await environment.onTerminalPath(this.context, program);
      // Python looks for modules in its current folder first; in the user's, a queue.py would break the server.
      const cwd = this.context.globalStorageUri.fsPath;
      await fs.mkdir(cwd, { recursive: true });
      const { python: command, args } = { ...program, args: [...program.args, "server"] };
      this.log.info(`starting ${[command, ...args].join(" ")}`);
      this.client = new QuietClient(
        "warpline",
        "Warpline",
        { command, args, options: { cwd }, transport: TransportKind.stdio },
        this.options(),
      );
      this.client.onNotification(protocol.results, () => this.changed.fire());
      this.client.onNotification(protocol.progress, (at) => this.progressed.fire(at));
      this.client.onDidChangeState(({ newState }) => {
        if (newState === State.Running) this.changed.fire();
      });
      await this.client.start();
    } catch (error) {
      if (error instanceof vscode.CancellationError) return;
      this.log.error(environment.message(error));
      void this.offer(`Warpline could not start: ${environment.message(error)}`, "Try Again");
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [
        { scheme: "file", language: "python" },
        { notebook: { scheme: "file", notebookType: "jupyter-notebook" }, language: "python" },
      ],
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- the pull model does not tell of a change
      synchronize: { configurationSection: "warpline" },
      outputChannel: this.log,
      middleware: this.middleware,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          const again = Date.now() - this.lastDeath < RESTART_WITHIN_MS;
          this.lastDeath = Date.now();
          const starting = this.starting !== undefined; // then the start fails, which is told of there
          if (!again && !starting) return { action: CloseAction.Restart, handled: true };
          if (!starting) void this.offer("Warpline's server ended twice within a minute.", "Restart");
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  private async offer(message: string, again: string): Promise<void> {
    const choice = await vscode.window.showErrorMessage(message, again, "Choose Interpreter", "Show Log");
    if (choice === again) await this.restart();
    else if (choice === "Show Log") this.log.show();
    else if (choice !== undefined) await vscode.commands.executeCommand("workbench.action.openSettings", "warpline.server.python");
  }
}
