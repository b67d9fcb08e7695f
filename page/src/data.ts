// What the page shows: the report as `warpline show --json` prints it (docs/contract.md), and what is beside it.

export interface Place {
  file: string;
  line: number;
}

export interface Use {
  name: string;
  phase: string;
  count: number;
  device_ms: number;
}

export interface Op extends Use {
  shapes: number[][];
}

export interface Inside extends Place {
  module: string | null;
  function: string;
  step_ms: number;
  device_ms: number;
  calls: number;
  sync_ms: number;
  part?: string; // not in older reports
  text: string;
}

export interface Roofline {
  flops: number;
  bytes: number;
  percent_of_peak: number;
  bound: string;
}

export interface Passes {
  count: number;
  step_ms: number;
  pass_ms: number;
  pass_device_ms: number | null;
  pass_host_ms: number | null;
}

export interface Tokens {
  prefill: Passes;
  decode: Passes;
  other_ms: number;
}

export interface Line extends Place {
  function: string;
  step_ms: number;
  device_ms: number;
  forward_ms: number;
  backward_ms: number;
  recompute_ms: number;
  idle_ms: number;
  cpu_ms: number;
  sync_ms: number;
  calls: number;
  launches: number;
  memory_bytes: number;
  kernels: Use[];
  ops: Op[];
  roofline: Roofline | null;
  inside: Inside[];
  tokens?: Tokens | null; // not in older reports
}

export interface Finding extends Place {
  id: string;
  rule: string;
  severity: string;
  cause: Place;
  message: string;
}

export interface Report {
  script: string;
  environment: { device: { kind: string; name: string } };
  steps: { captured: number; step_ms: number; profiled_step_ms: number };
  lines: Line[];
  unattributed: { device_ms: number; step_ms: number };
  findings: Finding[];
}

export type Kind = "marks" | "lines" | "ops" | "idle" | "stream";

/** Columns as `warpline.model.tracks.Track` describes them. */
export interface Track {
  name: string;
  kind: Kind;
  start_ns: number[];
  length_ns: number[];
  label: number[];
  line: number[];
  depth: number[];
  sort: number[];
}

export interface Timeline {
  length_ns: number;
  steps: [number, number][];
  median: number;
  labels: string[];
  lines: [string, number][];
  tracks: Track[];
  left_out: number;
  memory_ns: number[];
  memory_bytes: number[];
}

/** What the lines cost on one rank. */
export interface RankLines {
  rank: number;
  step_ms: number;
  lines: (Place & { step_ms: number })[];
}

export interface Data {
  report: Report;
  /** What no line was found for. */
  rest: { kernels: Use[]; ops: Op[] };
  timeline: Timeline | null;
  names: Record<string, string>;
  sources: Record<string, string>;
  kernels: Record<string, string>;
  /** Operations per second by kind of arithmetic, and bytes_per_s; empty where the device is not known. */
  roofs: Record<string, number>;
  peak_bytes: number;
  /** All ranks of a distributed run, this one included; [] for one process. */
  ranks: RankLines[];
}

/** Read the block of data in the page. */
export async function read(element: HTMLElement): Promise<Data> {
  const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(unpacked).json()) as Data;
}

export const key = (place: Place): string => `${place.file}:${place.line}`;

/** What is asked of the data again and again. */
export class Model {
  readonly lines = new Map<string, Line>();
  readonly texts = new Map<string, string[]>();

  constructor(readonly data: Data) {
    for (const line of data.report.lines) this.lines.set(key(line), line);
    for (const [file, text] of Object.entries(data.sources)) this.texts.set(file, text.split(/\r\n|\r|\n/));
  }

  get stepMs(): number {
    return this.data.report.steps.step_ms;
  }

  /** `train.py:18` */
  place(place: Place): string {
    return `${this.data.names[place.file] ?? place.file.replace(/^.*[\\/]/, "")}:${place.line}`;
  }

  source(place: Place): string {
    return this.texts.get(place.file)?.[place.line - 1]?.trim() ?? "";
  }

  kernel(name: string): string {
    return this.data.kernels[name] ?? name;
  }
}
