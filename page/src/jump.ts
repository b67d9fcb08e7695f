// Going to a source line from anywhere on the page.
import type { Place } from "./data";

type Goer = (place: Place) => void;
let goer: Goer | null = null;

export function onJump(go: Goer): void {
  goer = go;
}

export function jump(place: Place): void {
  goer?.(place);
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
