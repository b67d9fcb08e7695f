// The step as a tree, by what is called or by the model's modules. Its leaves add up to the step.
import type { Inside, Line, Model, Place } from "./data";

export interface Node {
  name: string;
  title: string;
  step: number; // its own, without its children
  device: number;
  place: Place | null;
  children: Map<string, Node>;
}

export const node = (name: string, title = name, place: Place | null = null): Node => ({
  name,
  title,
  step: 0,
  device: 0,
  place,
  children: new Map(),
});

function below(parent: Node, name: string, title = name, place: Place | null = null): Node {
  const known = parent.children.get(name);
  if (known !== undefined) return known;
  const made = node(name, title, place);
  parent.children.set(name, made);
  return made;
}

const short = (path: string): string => path.replace(/^.*[\\/]/, "");

function add(to: Node, from: { step_ms: number; device_ms: number }): void {
  to.step += from.step_ms;
  to.device += from.device_ms;
}

function ofLibrary(parent: Node, entry: Inside): Node {
  const place = `${short(entry.file)}:${entry.line}`;
  return below(parent, place, entry.text ? `${place}  ${entry.text}` : place);
}

/** Function, line, then what the line called in libraries: function and line. */
export function byCall(model: Model): Node {
  const root = node("step");
  for (const line of model.data.report.lines) {
    const file = model.data.names[line.file] ?? short(line.file);
    const own = ofLine(model, below(root, `${line.function} (${file})`), line);
    if (line.inside.length === 0) add(own, line);
    for (const entry of line.inside) {
      const itself = entry.file === line.file && entry.line === line.line;
      add(itself ? own : ofLibrary(below(own, entry.function || short(entry.file)), entry), entry);
    }
  }
  return withRest(root, model);
}

/** The model's modules, as their names are in it; what runs in no module is beside them. */
export function byModule(model: Model): Node {
  const root = node("step");
  for (const line of model.data.report.lines) {
    const outside = (): Node => ofLine(model, below(root, "outside of the model's modules"), line);
    if (line.inside.length === 0) add(outside(), line);
    for (const entry of line.inside) {
      if (entry.module === null) {
        add(entry.part ? ofLine(model, below(root, entry.part), line) : outside(), entry);
        continue;
      }
      let at = below(root, "model");
      let path = "";
      for (const part of entry.module === "" ? [] : entry.module.split(".")) {
        path = path === "" ? part : `${path}.${part}`;
        at = below(at, part, path);
      }
      add(ofLibrary(at, entry), entry);
    }
  }
  return withRest(root, model);
}

export const hasModules = (model: Model): boolean =>
  model.data.report.lines.some((line) => line.inside.some((entry) => entry.module !== null));

function ofLine(model: Model, parent: Node, line: Line): Node {
  const place = model.place(line);
  return below(parent, `${place}  ${model.source(line)}`, place, line);
}

function withRest(root: Node, model: Model): Node {
  add(below(root, "not attributed to any line"), model.data.report.unattributed);
  return root;
}
