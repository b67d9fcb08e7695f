// The page's script: reads the data in the page and draws what the plain part cannot show.
import "./page.css";
import { Model, read } from "./data";
import { make } from "./elements";
import { FlameView } from "./flame";
import { linkPlaces } from "./jump";
import * as memory from "./memory";
import * as ranks from "./ranks";
import * as roofline from "./roofline";
import { SourceView } from "./source";
import * as tables from "./tables";
import * as theme from "./theme";
import { TimelineView } from "./timeline";
import * as words from "./words";

async function start(): Promise<void> {
  const block = document.getElementById("data");
  const header = document.querySelector("header");
  if (block === null || header === null) return;
  theme.start(header);
  const model = new Model(await read(block));
  const { timeline } = model.data;
  const view = timeline !== null && timeline.tracks.length > 0 ? new TimelineView(model, timeline) : null;
  if (model.lines.size > 0) new FlameView(model);
  ranks.start(model);
  tables.start(model);
  if (model.texts.size > 0) new SourceView(model);
  memory.start(model);
  roofline.start(model);
  linkPlaces(document);
  keys();
  openRules();
  // What tests ask of the page; nothing of ours reads it.
  Object.assign(window, { warpline: { model, timeline: view, words } });
  document.body.dataset.ready = "true";
}

/** `/` goes to the search of the section that is on the screen. */
function keys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
    const inputs = [...document.querySelectorAll<HTMLInputElement>("input[type=search]")];
    const middle = innerHeight / 2;
    const away = (input: HTMLElement): number => Math.abs(input.getBoundingClientRect().top - middle);
    const [nearest] = inputs.filter((input) => input.offsetParent !== null).sort((a, b) => away(a) - away(b));
    if (nearest === undefined) return;
    event.preventDefault();
    nearest.focus();
  });
}

/** A link to a rule's text unfolds it. */
function openRules(): void {
  const open = (hash: string): void => {
    const target = hash.startsWith("#rule-") ? document.getElementById(hash.slice(1)) : null;
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", () => open(location.hash));
  // A webview of VS Code scrolls to what a link names, and leaves the address as it is.
  addEventListener("click", ({ target }) => {
    if (target instanceof HTMLAnchorElement) open(target.getAttribute("href") ?? "");
  });
  open(location.hash);
}

start().catch((error: unknown) => {
  const words = `The charts could not be drawn: ${error instanceof Error ? error.message : String(error)}`;
  document.querySelector("main")?.prepend(make("p", { class: "failed", role: "alert" }, words));
});
