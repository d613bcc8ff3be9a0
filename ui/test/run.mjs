// Runs the tests that need no browser: bundled first, since they are in TypeScript as the page is.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = mkdtempSync(join(tmpdir(), "holdup-ui-"));
const tests = readdirSync(here).filter((f) => f.endsWith(".test.ts"));
await build({
  absWorkingDir: here,
  entryPoints: tests,
  outdir: out,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const files = tests.map((t) => join(out, basename(t).replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files], { stdio: "inherit" });
rmSync(out, { recursive: true, force: true });
process.exit(status ?? 1);
