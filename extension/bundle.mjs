// bundled/libs: the server's packages for one platform, for every Python that has wheels of the same versions.
// Compiled modules have the Python's version in their names, so those of all versions stand in one folder.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** numpy ends its versions with the Pythons they support: no version has both 3.10 and 3.14. With 3.10, which is
 *  no longer maintained, the extension makes an environment from the package index instead. */
const PYTHONS = ["3.11", "3.12", "3.13", "3.14"];

const glibc = (machine) => ["_2_28", "_2_27", "_2_17", "2014", "_2_12", "_2_5", "1"].map((version) => `manylinux${version}_${machine}`);
const macos = ["11", "12", "13", "14"].flatMap((version) => [`macosx_${version}_0_arm64`, `macosx_${version}_0_universal2`]);
/** Of Alpine and Intel Macs some package has no wheel: they have the universal .vsix. */
export const TARGETS = { "linux-x64": glibc("x86_64"), "linux-arm64": glibc("aarch64"), "darwin-arm64": macos };

/** What the server never imports: most of the size of numpy beside its core, and the tests of all of them. And wasmtime, 30 MB
 *  that make reading large traces faster. */
const UNUSED = [
  /(^|\/)tests\//, /\.(pyi|a|pxd|h)$/, /(^|\/)__pycache__\//, /^(yaml|_yaml|PyYAML[^/]*|pyyaml[^/]*)\//,
  /^numpy\/(f2py|testing|distutils|_pyinstaller)\//, /^numpy\/(random|fft)\/.*\.(so|pyd|dylib)$/, /^numpy\/_core\/_(simd|.*_tests)\./,
  /^bin\/(?!py-spy$)/, /^wasmtime(-[^/]*)?\//,
];
/** Files that name the Python they were built for and are not read by it. */
const OF_ONE_PYTHON = /\.dist-info\/|^numpy\/__config__\.py$/;

/** Fill `folder` for a platform; it is left as it is when it has been filled from the same lists. */
export function bundle(folder, target, requirements) {
  const pins = readFileSync("constraints.txt", "utf8").split("\n").filter((line) => !/python_version < "3\.11"/.test(line));
  const constraints = pins.map((line) => line.split(";")[0].trim()).join("\n");
  const recipe = [requirements, constraints, readFileSync(new URL(import.meta.url), "utf8"), target].join("\n");
  const stamp = path.join(folder, "made-from");
  const wanted = createHash("sha256").update(recipe).digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  rmSync(folder, { recursive: true, force: true });
  const scratch = mkdtempSync(path.join(tmpdir(), "warpline-bundle-"));
  try {
    writeFileSync(path.join(scratch, "constraints.txt"), constraints);
    let names = requirements.trim().split("\n");
    for (const version of PYTHONS) {
      const made = path.join(scratch, version);
      const platforms = [...TARGETS[target], "any"].flatMap((name) => ["--platform", name]);
      const wheels = ["--only-binary=:all:", "--implementation", "cp", "--python-version", version, ...platforms];
      const rest = version === PYTHONS[0] ? [] : ["--no-deps"];
      const install = ["-m", "pip", "install", "--disable-pip-version-check", "-qq", "--no-compile", "--target", made, ...wheels, ...rest];
      execFileSync(python(), [...install, "-c", path.join(scratch, "constraints.txt"), ...names], { stdio: ["ignore", "ignore", "inherit"] });
      merge(made, path.join(folder, "libs"));
      if (version === PYTHONS[0]) names = compiled(made);
    }
    writeFileSync(stamp, wanted);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function python() {
  const own = path.join(".venv", "bin", "python");
  return process.env.PYTHON ?? (existsSync(own) ? own : "python3");
}

/** What must be got for each Python: the packages whose wheels name one. */
function compiled(folder) {
  const about = readdirSync(folder).filter((name) => name.endsWith(".dist-info"));
  const tagged = about.filter((name) => /^Tag: cp/m.test(readFileSync(path.join(folder, name, "WHEEL"), "utf8")));
  return tagged.map((name) => name.replace(".dist-info", "").replace("-", "=="));
}

/** Copy what is used; a file that two Pythons have differently must be a compiled one, with another name each. */
function merge(from, to) {
  for (const entry of readdirSync(from, { recursive: true })) {
    const name = entry.split(path.sep).join("/");
    const [source, place] = [path.join(from, entry), path.join(to, entry)];
    if (statSync(source).isDirectory() || UNUSED.some((pattern) => pattern.test(name))) continue;
    if (existsSync(place)) {
      if (OF_ONE_PYTHON.test(name) || readFileSync(source).equals(readFileSync(place))) continue;
      throw new Error(`${name} differs between two Pythons`);
    }
    mkdirSync(path.dirname(place), { recursive: true });
    cpSync(source, place);
  }
}
