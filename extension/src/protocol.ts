// The server's own requests and notifications, as server/warpline/lsp/PROTOCOL.md has them.
// Lines are 0-based, times milliseconds per step, shares fractions of the step.
import { NotificationType, RequestType } from "vscode-languageclient/node";

export interface ProfileParams {
  uri?: string;
  module?: string;
  args?: string[];
  python?: string;
  launch?: object;
  whenBusy?: "refuse" | "queue";
}

export interface ProfileResult {
  stepMs: number;
}

export interface ProfileRefusal {
  reason: "busy" | "failed" | "refused" | "no-torch" | "no-python" | "no-steps";
  remedy?: { title: string; command: string; arguments?: unknown[] };
}

export interface HeatResult {
  version: number | null;
  lines: { line: number; share: number; stale: boolean }[];
}

export interface HotLine {
  uri: string;
  line: number;
  function: string;
  text: string;
  label: string;
  stale: boolean;
}

export interface Finding {
  id: string;
  rule: string;
  severity: "error" | "warning" | "information" | "hint";
  uri: string;
  line: number;
  message: string;
  cause: { uri: string; line: number };
  predicted: number | null;
  measured: number | null;
}

export interface Overview {
  script: string;
  stepMs: number;
  previousStepMs: number | null;
  device: string;
  lines: HotLine[];
  findings: Finding[];
  notes: string[];
}

export interface Comparison {
  before: { stepMs: number; createdMs: number };
  after: { stepMs: number };
  speedup: number;
  lines: {
    uri: string;
    line: number;
    function: string;
    text: string;
    beforeMs: number | null;
    afterMs: number | null;
    deltaMs: number;
  }[];
}

export interface MeasureParams {
  uri: string;
  findingId: string;
  apply?: boolean;
}

export interface Measured {
  speedup: number;
  low: number;
  high: number;
  applied: boolean;
}

export interface Progress {
  uri: string;
  stage: string;
  message: string;
}

export const profile = new RequestType<ProfileParams, ProfileResult | null, ProfileRefusal>("warpline/profile");
export const heat = new RequestType<{ uri: string }, HeatResult | null, void>("warpline/heat");
export const overview = new RequestType<{ uri?: string }, Overview | null, void>("warpline/overview");
export const compare = new RequestType<{ uri?: string }, Comparison | null, void>("warpline/compare");
export const measure = new RequestType<MeasureParams, Measured, ProfileRefusal>("warpline/measure");
export const progress = new NotificationType<Progress>("warpline/progress");
export const results = new NotificationType<{ run: string | null; uris: string[] }>("warpline/results");
