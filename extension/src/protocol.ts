// The server's own requests and notifications, as server/warpline/lsp/PROTOCOL.md has them.
// Lines are 0-based, times milliseconds per step, shares fractions of the step.
import { NotificationType, RequestType } from "vscode-languageclient/node";

export interface Place {
  uri: string;
  line: number;
}

export interface ProfileParams {
  uri?: string;
  module?: string;
  args?: string[];
  python?: string;
  launch?: { name: string; python?: unknown };
  again?: string;
  whenBusy?: "refuse" | "queue";
}

export interface ProfileResult {
  script: string;
  summary: string;
  best: (Place & { name: string }) | null;
}

export interface Remedy {
  title: string;
  command: string;
  arguments?: unknown[];
}

export interface Refusal {
  reason: "busy" | "failed" | "refused" | "no-torch" | "no-python" | "no-steps";
  remedies?: Remedy[];
}

export interface HeatResult {
  version: number | null;
  lines: { line: number; share: number; stale: boolean; label: string }[];
}

export interface HotLine extends Place {
  function: string;
  text: string;
  share: number;
  label: string;
  stale: boolean;
  inside: Inside[];
}

/** A module, a library's line, or the rest of them, within a line; `inside` adds up to it. */
export interface Inside {
  label: string;
  name: string;
  about: string;
  place: string;
  uri: string | null;
  line: number;
  inside: Inside[];
}

export interface Finding extends Place {
  id: string;
  rule: string;
  severity: "error" | "warning" | "information" | "hint";
  message: string;
  cause: Place;
  measured: number | null;
  gain: string;
  detail: string;
  fixes: string[];
  stale: boolean;
}

export interface Overview {
  run: string;
  script: string;
  argv: string[];
  again: string;
  label: string;
  summary: string;
  change: string | null;
  previousStepMs: number | null;
  device: string;
  lines: HotLine[];
  totals: { uri: string; function: string; label: string; total: string | null }[];
  findings: Finding[];
  notes: string[];
}

export interface Comparison {
  title: string;
  comparable: boolean;
  lines: (Place & { text: string; afterMs: number | null; label: string })[];
}

export interface CompareParams {
  uri?: string;
  run?: string;
  with?: string;
  hints?: boolean;
}

export interface Run {
  run: string;
  script: string;
  module: string | null;
  argv: string[];
  createdMs: number;
  device: string;
  label: string;
  shown: boolean;
}

export interface Page {
  run: string;
  script: string;
  file: string;
}

export interface MeasureParams {
  uri: string;
  findingId: string;
  apply?: boolean;
}

export interface Measured {
  summary: string;
  kept: boolean;
  applied: boolean;
}

export interface Tuned {
  summary: string;
  fixes: string[];
  applied: boolean;
}

export interface Progress {
  uri: string;
  stage: string;
  message: string;
  percent?: number;
}

export const profile = new RequestType<ProfileParams, ProfileResult | null, Refusal>("warpline/profile");
export const heat = new RequestType<{ uri: string; first: number; last: number }, HeatResult | null, void>("warpline/heat");
export const overview = new RequestType<{ uri?: string }, Overview | null, void>("warpline/overview");
export const compare = new RequestType<CompareParams, Comparison | null, void>("warpline/compare");
export const runs = new RequestType<{ uri?: string }, Run[], void>("warpline/runs");
export const openRun = new RequestType<{ run: string }, boolean, void>("warpline/openRun");
export const page = new RequestType<{ run?: string; uri?: string }, Page | null, void>("warpline/page");
export const place = new RequestType<{ run: string; file: string; line: number }, Place | null, void>("warpline/place");
export const measure = new RequestType<MeasureParams, Measured, Refusal>("warpline/measure");
export const apply = new RequestType<MeasureParams, boolean, Refusal>("warpline/apply");
export const tune = new RequestType<{ uri: string; apply: boolean }, Tuned, Refusal>("warpline/tune");
export const progress = new NotificationType<Progress>("warpline/progress");
export const results = new NotificationType<{ run: string | null; uris: string[] }>("warpline/results");
