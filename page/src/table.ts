// A table whose columns sort and whose rows can be searched.
import { button, make, search } from "./elements";

export interface Column<Row> {
  name: string;
  title: string;
  value: (row: Row) => number | string;
  text: (row: Row) => string;
  /** What the cell shows when hovered, where that is more. */
  full?: (row: Row) => string;
  /** 0 to 1: how dark the cell's background is. */
  heat?: (row: Row) => number;
}

const FIRST = 50;

export class Table<Row> {
  readonly element = make("div", { class: "sortable" });
  private readonly body = make("tbody");
  private readonly head = make("tr");
  private readonly status = make("span", { class: "soft", role: "status" });
  private readonly foot = make("div");
  private words = "";
  private most = FIRST;
  private sorted: { column: number; down: boolean };

  constructor(
    label: string,
    private readonly rows: Row[],
    private readonly columns: Column<Row>[],
    by: string,
    private readonly chosen: (row: Row) => void,
  ) {
    this.sorted = { column: Math.max(0, columns.findIndex((column) => column.name === by)), down: true };
    const find = search(`Find ${label}`, (words) => {
      this.words = words;
      this.fill();
    });
    const table = make("table", { "aria-label": label }, make("thead", {}, this.head), this.body);
    this.element.append(
      make("div", { class: "tools" }, find, this.status),
      make("div", { class: "lines" }, table),
      this.foot,
    );
    this.fill();
  }

  private fill(): void {
    const column = this.columns[this.sorted.column];
    const found = this.rows.filter((row) => this.words === "" || this.said(row).includes(this.words));
    if (column !== undefined) {
      const sign = this.sorted.down ? -1 : 1;
      found.sort((a, b) => sign * compare(column.value(a), column.value(b)));
    }
    this.head.replaceChildren(...this.columns.map((each, at) => this.heading(each, at)));
    this.body.replaceChildren(...found.slice(0, this.most).map((row) => this.row(row)));
    this.status.textContent = `${found.length} of ${this.rows.length}`;
    const left = found.length - this.most;
    this.foot.replaceChildren();
    if (left > 0)
      this.foot.append(
        button(`${left} more`, "Show all rows", () => {
          this.most = Infinity;
          this.fill();
        }),
      );
  }

  private said(row: Row): string {
    return this.columns.map((column) => `${column.text(row)} ${column.full?.(row) ?? ""}`).join(" ").toLowerCase();
  }

  private heading(column: Column<Row>, at: number): HTMLElement {
    const here = at === this.sorted.column;
    const sign = here ? (this.sorted.down ? " ▾" : " ▴") : "";
    const sort = button(column.name + sign, column.title, () => {
      const down = here ? !this.sorted.down : !this.isText(column);
      this.sorted = { column: at, down };
      this.fill();
      this.head.querySelectorAll("button")[at]?.focus();
    });
    const order = here ? (this.sorted.down ? "descending" : "ascending") : "none";
    return make("th", { "aria-sort": order, class: this.isText(column) ? "words" : "" }, sort);
  }

  private isText(column: Column<Row>): boolean {
    const [first] = this.rows;
    return first !== undefined && typeof column.value(first) === "string";
  }

  private row(row: Row): HTMLElement {
    const cells = this.columns.map((column) => {
      const cell = make("td", { class: this.isText(column) ? "words" : "number" }, column.text(row));
      if (column.full !== undefined) cell.title = column.full(row);
      const heat = column.heat?.(row) ?? 0;
      if (heat > 0) cell.style.setProperty("background", `rgba(var(--hot), ${Math.min(0.75, heat).toFixed(3)})`);
      return cell;
    });
    const made = make("tr", { tabindex: "0" }, ...cells);
    made.addEventListener("click", () => this.chosen(row));
    made.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.chosen(row);
    });
    return made;
  }
}

function compare(a: number | string, b: number | string): number {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}
