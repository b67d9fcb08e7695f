// Each line on every rank of a distributed run.
import type { Model, Place } from "./data";
import { key } from "./data";
import { make } from "./elements";
import { jump } from "./jump";
import { type Column, Table } from "./table";
import { milliseconds } from "./words";

interface Row extends Place {
  /** Its part of the step, by the number's position in `Data.ranks`; 0 where it costs nothing. */
  ms: number[];
  least: number;
  most: number;
  slowest: number;
}

/** With more ranks than these, a column for each would be too wide. */
const COLUMNS = 8;

export function start(model: Model): void {
  const { ranks } = model.data;
  const home = document.getElementById("ranks");
  if (home === null || ranks.length < 2) return;
  const rows = new Map<string, Row>();
  ranks.forEach((rank, at) => {
    for (const { file, line, step_ms } of rank.lines) {
      const row = rows.get(key({ file, line })) ?? { file, line, ms: ranks.map(() => 0), least: 0, most: 0, slowest: 0 };
      row.ms[at] = step_ms;
      rows.set(key(row), row);
    }
  });
  for (const row of rows.values()) {
    row.least = Math.min(...row.ms);
    row.most = Math.max(...row.ms);
    row.slowest = ranks[row.ms.indexOf(row.most)]?.rank ?? 0;
  }
  const step = Math.max(...ranks.map((rank) => rank.step_ms));
  const time = (name: string, title: string, of: (row: Row) => number): Column<Row> => ({
    name,
    title,
    value: of,
    text: (row) => milliseconds(of(row)),
    heat: (row) => of(row) / step,
  });
  const each =
    ranks.length <= COLUMNS
      ? ranks.map((rank, at) => time(`rank ${rank.rank}`, "Its part of the step there, ms", (row) => row.ms[at] ?? 0))
      : [
          time("lowest", "On the rank where it costs least, ms", (row) => row.least),
          time("mean", "Over all ranks, ms", (row) => row.ms.reduce((sum, value) => sum + value) / row.ms.length),
          time("highest", "On the rank where it costs most, ms", (row) => row.most),
        ];
  const columns: Column<Row>[] = [
    { name: "line", title: "Where", value: (row) => model.place(row), text: (row) => model.place(row) },
    { name: "source", title: "What it says", value: (row) => model.source(row), text: (row) => model.source(row) },
    ...each,
    time("apart", "Between the ranks where it costs most and least, ms", (row) => row.most - row.least),
    { name: "slowest", title: "The rank where it costs most", value: (row) => row.slowest, text: (row) => `rank ${row.slowest}` },
  ];
  const note =
    "Milliseconds of each line on every rank. A line that is slower on one rank only makes the others wait at their " +
    "next exchange: there the same time stands at the line of the exchange.";
  home.append(make("p", { class: "soft" }, note), new Table("lines by rank", [...rows.values()], columns, "apart", jump).element);
}
