// The script and the style of `warpline report --html`, each as one readable file beside the Python code, so that
// `pip install` needs no node. The licences of what is bundled stand at its end. With --check nothing is written: status 1 when the files are not what the sources make.
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "esbuild";

const folder = "server/warpline/html";
const { outputFiles, metafile } = await build({
  entryPoints: { page: "page/src/main.ts" },
  outdir: folder,
  bundle: true,
  write: false,
  metafile: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  preserveSymlinks: true, // a linked node_modules makes the same files, with their licences
  logLevel: "warning",
});

// The licences of what is bundled, once for each package.
const packages = new Set(
  Object.keys(metafile.inputs)
    .map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
    .filter((name) => name !== undefined),
);
const licences = [...packages].sort().map((name) => {
  const at = join("node_modules", name);
  const { version } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const file = readdirSync(at).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) throw new Error(`${name}: no licence`);
  return `${name} ${version}\n\n${readFileSync(join(at, file), "utf8").trim()}\n`;
});
const files = new Map(
  outputFiles.map((file) => {
    const path = relative(process.cwd(), file.path);
    const notice = `/*\nThis file has parts of the packages below.\n\n${licences.join("\n\n")}*/\n`;
    return [path, path.endsWith(".js") ? file.text + notice : file.text];
  }),
);
const stale = [...files].filter(([path, text]) => !existsSync(path) || readFileSync(path, "utf8") !== text);
if (!process.argv.includes("--check")) for (const [path, text] of stale) writeFileSync(path, text);
else if (stale.length > 0) {
  console.error(`${stale.map(([path]) => path).join(", ")}: not what page/src makes; run 'npm run page'`);
  process.exitCode = 1;
}
