// Going to a source line from anywhere on the page.
import type { Place } from "./data";

/** In a webview of VS Code, which gives each page this function once. */
declare const acquireVsCodeApi: (() => { postMessage(message: Place): void }) | undefined;
const editor = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : null;

type Goer = (place: Place) => void;
let goer: Goer | null = null;

export function onJump(go: Goer): void {
  goer = go;
}

export function jump(place: Place): void {
  if (editor === null) goer?.(place);
  else open(place);
}

/** Show the line in the editor that the page is in, if it is in one. */
export function open({ file, line }: Place): void {
  editor?.postMessage({ file, line });
}

/** Places in the plain part of the page become buttons. */
export function linkPlaces(root: ParentNode): void {
  for (const code of root.querySelectorAll<HTMLElement>("code[data-file]")) {
    const place = { file: code.dataset.file ?? "", line: Number(code.dataset.line) };
    const made = document.createElement("button");
    made.type = "button";
    made.className = "place";
    made.title = "Show the source";
    made.textContent = code.textContent;
    made.addEventListener("click", () => jump(place));
    code.replaceWith(made);
  }
}
