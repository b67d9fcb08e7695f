// Whole source files, with what each line costs in the margin.
import { type Finding, type Line, type Model, type Place, key } from "./data";
import { button, choice, make, section } from "./elements";
import { onJump, open } from "./jump";
import { count, milliseconds, ms, percent, percentage, rate, size } from "./words";

const USES = 12;

export class SourceView {
  private readonly listing = make("div", { class: "lines listing" });
  private readonly picker: HTMLSelectElement | null;
  private file = "";

  constructor(private readonly model: Model) {
    const files = this.files();
    const home = section("source");
    const pick = choice("file", files.map(([file, time]) => [file, `${model.data.names[file] ?? file}  (${ms(time)})`]), (file) => this.show(file));
    this.picker = pick.querySelector("select");
    const next = button("next costly line", "Go to the next of the costliest lines", () => this.next());
    home.append(make("div", { class: "tools" }, pick, next), this.listing);
    const [first] = files;
    if (first !== undefined) this.show(first[0]);
    // Unlike `go`, this scrolls the listing only.
    const costliest = this.model.data.report.lines.find((line) => line.file === this.file);
    const row = this.listing.querySelector<HTMLElement>(`tr[data-line="${costliest?.line ?? 0}"]`);
    if (row !== null) this.listing.scrollTop = row.offsetTop - this.listing.clientHeight / 3;
    onJump((place) => this.go(place));
  }

  /** Paths by the time of their lines, the costliest first. */
  private files(): [string, number][] {
    const found = new Map(Object.keys(this.model.data.sources).map((file) => [file, 0]));
    for (const line of this.model.data.report.lines)
      if (found.has(line.file)) found.set(line.file, (found.get(line.file) ?? 0) + line.step_ms);
    return [...found].sort((a, b) => b[1] - a[1]);
  }

  private show(file: string): void {
    if (file === this.file) return;
    this.file = file;
    if (this.picker !== null) this.picker.value = file;
    const findings = new Map<number, Finding[]>();
    for (const finding of this.model.data.report.findings)
      if (finding.file === file) findings.set(finding.line, [...(findings.get(finding.line) ?? []), finding]);
    const rows = (this.model.texts.get(file) ?? []).map((text, at) => this.row(at + 1, text, findings.get(at + 1) ?? []));
    const heads = ["", "step ms", "share", "device ms", ""].map((name) => make("th", {}, name));
    this.listing.replaceChildren(make("table", { "aria-label": "Source" }, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
  }

  private row(number: number, text: string, findings: Finding[]): HTMLElement {
    const line = this.model.lines.get(key({ file: this.file, line: number }));
    const time = make("td", { class: "number" }, line === undefined ? "" : milliseconds(line.step_ms));
    const share = line === undefined ? 0 : line.step_ms / this.model.stepMs;
    if (share > 0.0005) time.style.setProperty("background", `rgba(var(--hot), ${Math.min(0.75, Math.max(0.04, share)).toFixed(3)})`);
    const code = make("td", { class: "source" }, text);
    for (const finding of findings) {
      const badge = make("a", { class: `badge ${finding.severity}`, href: `#finding-${finding.id}`, title: finding.message }, finding.rule);
      code.append("  ", badge);
    }
    const made = make(
      "tr",
      { "data-line": String(number) },
      make("td", { class: "number soft" }, String(number)),
      time,
      make("td", { class: "number" }, line === undefined ? "" : percent(share)),
      make("td", { class: "number" }, line !== undefined && line.device_ms >= 0.0005 ? milliseconds(line.device_ms) : ""),
      code,
    );
    if (line !== undefined) {
      made.classList.add("costs");
      made.tabIndex = 0;
      made.title = "What the line is made of";
      made.addEventListener("click", (event) => {
        if (event.target instanceof HTMLAnchorElement) return;
        this.unfold(made, line);
        open(line);
      });
      made.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target === made) this.unfold(made, line);
      });
    }
    return made;
  }

  private unfold(row: HTMLElement, line: Line): void {
    const next = row.nextElementSibling;
    if (next?.classList.contains("detail") === true) next.remove();
    else row.after(make("tr", { class: "detail" }, make("td", { colspan: "5" }, ...this.detail(line))));
  }

  private detail(line: Line): HTMLElement[] {
    const facts = [
      `${line.function}: ${ms(line.step_ms)} of the step`,
      `device ${ms(line.device_ms)} (forward ${ms(line.forward_ms)}, backward ${ms(line.backward_ms)})`,
      `host ${ms(line.cpu_ms)}`,
      `${count(line.calls)} calls, ${count(line.launches)} launches`,
    ];
    if (line.memory_bytes > 0) facts.push(`${size(line.memory_bytes)} held at the memory peak`);
    if (line.roofline !== null)
      facts.push(`${line.roofline.bound}-bound: ${percentage(line.roofline.percent_of_peak)} of peak (${rate(line.roofline.flops, "FLOP")}, ${size(line.roofline.bytes)})`);
    const inside = line.inside.map((each) => [each.module ?? (each.part === undefined || each.part === "" ? each.function : each.part), `${each.file.replace(/^.*[\\/]/, "")}:${each.line}`, ms(each.step_ms), each.text]);
    const kernels = line.kernels.map((use) => [this.model.kernel(use.name), use.phase, ms(use.device_ms), count(use.count)]);
    const ops = line.ops.map((use) => [use.name, use.phase, ms(use.device_ms), count(use.count)]);
    return [
      make("p", {}, facts.join("; ")),
      ...list(["generate", "a step", "of the step", "each", "device", "host"], passes(line)),
      ...list(["inside", "line", "of the step", ""], inside),
      ...list(["kernel", "phase", "device", "a step"], kernels),
      ...list(["operator", "phase", "device", "a step"], ops),
    ];
  }

  private go(place: Place): void {
    if (!this.model.texts.has(place.file)) return;
    this.show(place.file);
    const row = this.listing.querySelector<HTMLElement>(`tr[data-line="${place.line}"]`);
    if (row === null) return;
    for (const old of this.listing.querySelectorAll(".here")) old.classList.remove("here");
    row.classList.add("here");
    row.scrollIntoView({ block: "center" });
    if (row.tabIndex === 0) row.focus({ preventScroll: true });
  }

  private next(): void {
    const costly = this.model.data.report.lines.filter((line) => this.model.texts.has(line.file)).slice(0, 10);
    const here = Number(this.listing.querySelector<HTMLElement>(".here")?.dataset.line);
    const at = costly.findIndex((line) => line.file === this.file && line.line === here);
    const line = costly[(at + 1) % Math.max(1, costly.length)];
    if (line !== undefined) this.go(line);
  }
}

function list(heads: string[], rows: string[][]): HTMLElement[] {
  if (rows.length === 0) return [];
  const body = rows.slice(0, USES).map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell))));
  const more = rows.length > USES ? [make("tr", {}, make("td", { colspan: "4", class: "soft" }, `${rows.length - USES} more`))] : [];
  return [make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", {}, head)))), make("tbody", {}, ...body, ...more))];
}

/** The passes of a line that calls generate, each kind's number and time in a step, and what one of them takes. */
function passes({ tokens }: Line): string[][] {
  if (tokens === undefined || tokens === null) return [];
  const of = (time: number | null): string => (time === null ? "" : ms(time));
  const kinds = [["prefill", tokens.prefill], ["decode", tokens.decode]] as const;
  const rows = kinds.map(([name, kind]) => [name, count(kind.count), ms(kind.step_ms), ms(kind.pass_ms), of(kind.pass_device_ms), of(kind.pass_host_ms)]);
  return [...rows, ["generate itself", "", ms(tokens.other_ms), "", "", ""]];
}
