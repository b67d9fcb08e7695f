// The .vsix of each platform that is named (this machine's by default): node extension/package.mjs [TARGET | universal]…
// `universal` carries no packages: there the server's environment is made from the package index by the first profile.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { bundle, TARGETS } from "./bundle.mjs";

const libc = existsSync("/etc/alpine-release") ? "alpine" : process.platform;
const named = process.argv.slice(2);
const here = `${libc}-${process.arch}`;
const targets = named.length > 0 ? named : [here in TARGETS ? here : "universal"];
const unknown = targets.find((target) => target !== "universal" && !(target in TARGETS));
if (unknown !== undefined) {
  console.error(`no packages are known for ${unknown}; there are: universal ${Object.keys(TARGETS).join(" ")}`);
  process.exit(2);
}
for (const target of targets) {
  execFileSync(process.execPath, ["extension/build.mjs"], { stdio: "inherit" });
  rmSync("bundled", { recursive: true, force: true });
  if (target !== "universal") {
    const kept = `.cache/bundled/${target}`; // for the next time
    bundle(kept, target, readFileSync("dist/requirements.txt", "utf8"));
    cpSync(`${kept}/libs`, "bundled/libs", { recursive: true });
  }
  const out = `dist/warpline-${target}.vsix`;
  const platform = target === "universal" ? [] : ["--target", target];
  execFileSync("node_modules/.bin/vsce", ["package", ...platform, "--out", out], { stdio: ["ignore", "ignore", "inherit"] });
  rmSync("bundled", { recursive: true, force: true }); // a plain `vsce package` takes what lies there
  console.log(`${out}: ${(statSync(out).size / 1e6).toFixed(1)} MB`);
}
