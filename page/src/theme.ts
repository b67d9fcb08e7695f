// Colours of the canvases, from the style sheet, and the switch between light and dark.
import { button } from "./elements";

export interface Colours {
  ink: string;
  soft: string;
  paper: string;
  edge: string;
  code: string;
  accent: string;
  parts: Record<string, string>;
  lines: string[];
  other: string;
}

const PARTS = ["loader", "host", "forward", "backward", "optimizer", "communication", "idle", "copy"];
const LINES = 10;
const listeners: (() => void)[] = [];
let known: Colours | null = null;

function read(): Colours {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: value("ink"),
    soft: value("soft"),
    paper: value("paper"),
    edge: value("edge"),
    code: value("code"),
    accent: value("link"),
    parts: Object.fromEntries(PARTS.map((name) => [name, value(name)])),
    lines: Array.from({ length: LINES }, (_, at) => value(`line${at}`)),
    other: value("other"),
  };
}

export const colours = (): Colours => (known ??= read());

/** Call `draw` whenever the colours change. */
export function onTheme(draw: () => void): void {
  listeners.push(draw);
}

function changed(): void {
  known = null;
  for (const draw of listeners) draw();
}

export function start(header: HTMLElement): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const now = (): string => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  // Paper is light, whatever the screen is.
  let chosen: string | undefined;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    root.dataset.theme = "light";
    changed();
  });
  addEventListener("afterprint", () => {
    if (chosen === undefined) delete root.dataset.theme;
    else root.dataset.theme = chosen;
    changed();
  });
  header.append(
    button("◐", "Light or dark", () => {
      root.dataset.theme = now() === "dark" ? "light" : "dark";
      changed();
    }),
  );
  dark.addEventListener("change", changed);
  // VS Code says its theme at the body of a webview.
  const follow = (): void => {
    const kind = document.body.dataset.vscodeThemeKind;
    if (kind === undefined) return;
    root.dataset.theme = kind.endsWith("light") ? "light" : "dark";
    changed();
  };
  follow();
  new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-vscode-theme-kind"] });
}
