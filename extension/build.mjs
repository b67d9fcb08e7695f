// dist/: the extension as one file, and the requirements of the server's environment.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

await build({
  entryPoints: ["extension/src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  external: ["vscode"],
  platform: "node",
  target: "node20",
  format: "cjs",
  minify: true,
  logLevel: "warning",
});

// pyproject.toml is where the server's dependencies are named; pip in the user's place reads a plain list.
const dependencies = /^dependencies = \[\n(.*?)^\]/ms.exec(readFileSync("pyproject.toml", "utf8"));
if (dependencies === null) throw new Error("pyproject.toml: no dependencies");
const entries = dependencies[1].split("\n").map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
const named = entries.map((line) => {
  const entry = /^"([^"]*)",(?: *#.*)?$/.exec(line);
  if (entry === null) throw new Error(`pyproject.toml: dependencies are not one a line: ${line}`);
  return entry[1];
});
// pandas serves `warpline.load` in notebooks and scripts, which import it from their own environment: a third of the size.
const requirements = named.filter((requirement) => !requirement.startsWith("pandas"));
writeFileSync("dist/requirements.txt", requirements.join("\n") + "\n");
