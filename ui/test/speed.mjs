// How fast the page answers a hand, and how much memory the browser needs: HOLDUP_URL is the page's address. Times run from
// the key or click until every question that it led to is answered and drawn.
import { readFileSync, readdirSync } from "node:fs";
import { open } from "./browser.mjs";

const { page, context, problems, close, profile } = await open({ width: 1920, height: 1080 });
await page.goto("about:blank");
await page.waitForTimeout(2000);
const blank = memory();
const began = Date.now();
await page.goto(process.env.HOLDUP_URL);
await page.waitForFunction(() => performance.getEntriesByName("first").length > 0, null, { timeout: 600_000 });
const summary = Date.now() - began;
await page.waitForFunction(() => globalThis.holdupTimings.some((t) => t.gesture.startsWith("use")) && globalThis.holdupTimings.some((t) => t.gesture === "lanes"), null, { timeout: 600_000 });
const first = Date.now() - began;
await page.waitForSelector(".findings", { timeout: 900_000 });
const explained = Date.now() - began;
await page.waitForTimeout(1500);

/** Does something in the page and waits for the last picture that comes of it; milliseconds. */
const timed = (act, arg) =>
  page.evaluate(
    async ([act, arg]) => {
      const frame = () => new Promise((go) => requestAnimationFrame(go));
      const from = performance.now();
      if (act === "key") document.dispatchEvent(new KeyboardEvent("keydown", { key: arg, bubbles: true }));
      else if (act === "button") [...document.querySelectorAll(".switch button")].find((b) => b.textContent === arg)?.click();
      else if (act === "click") document.querySelectorAll(arg)[0]?.click();
      else {
        const input = document.querySelector(".tools input[type=search]");
        input.value = arg;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }
      for (let quiet = 0; quiet < 2; ) {
        await frame();
        quiet = globalThis.holdupBusy() === 0 ? quiet + 1 : 0;
      }
      return performance.now() - from;
    },
    [act, arg],
  );

const quantile = (all, q) => all.toSorted((a, b) => a - b)[Math.min(all.length - 1, Math.floor(q * all.length))];
const say = (name, all) => console.log(`${name.padEnd(28)} n ${String(all.length).padStart(3)}  median ${quantile(all, 0.5).toFixed(0).padStart(5)} ms  p95 ${quantile(all, 0.95).toFixed(0).padStart(5)} ms`);
const all = [];
const series = async (name, steps) => {
  const times = [];
  for (const [act, arg] of steps) times.push(await timed(act, arg));
  all.push(...times);
  say(name, times);
};
const keys = (text) => [...text].map((k) => ["key", k]);

console.log(`summary ${summary} ms, first picture ${first} ms, explained ${explained} ms after the address was opened`);
await series("zoom in", keys("w".repeat(16)));
await series("pan", keys("ddddddddaaaaaaaaaaaa"));
await series("zoom out", keys("s".repeat(16)));
await series("zoom and pan", keys("wwwdwwwawwwdsswwwadssss0wwdd0"));
await page.evaluate(() => document.querySelector(".lanes .switch button")?.click());
const toggles = [];
for (let i = 0; i < 10; i++) toggles.push(["click", ".lanes .scroll .label[aria-expanded]"]);
await series("expand and fold a group", toggles);
await series("filter lanes", ["w", "wo", "wor", "work", "worker", "worker-1", "worker-12", "", "k", ""].map((t) => ["input", t]));
await series("CPU lanes and back", [["click", ".switch button:nth-child(2)"], ["click", ".switch button:nth-child(1)"], ["click", ".switch button:nth-child(2)"], ["click", ".switch button:nth-child(1)"]]);
await series("table: open, zoom", [["key", "3"], ...keys("wwdda0")]);
await series("table: open a group", Array.from({ length: 6 }, () => ["click", "tbody .twisty"]));
await series("flame graph: open, zoom", [["key", "4"], ...keys("wwda0")]);
for (const of of ["On CPU", "Off CPU", "Wakers", "Blame"]) {
  await series(`flame graph: ${of}, zoom`, [["button", of], ...keys("wwda0")]);
}
// With the first cause chosen all of it is about that one.
await series("a cause: choose", [["key", "1"], ["key", "j"]]);
await series("a cause: flame graph, zoom", [["key", "4"], ...keys("0wwda")]);
await series("a cause: table, zoom", [["key", "3"], ...keys("0wwda")]);
say("all of these", all);
await page.keyboard.press("1");
await page.waitForTimeout(1000);

const session = await context.newCDPSession(page);
await session.send("HeapProfiler.collectGarbage");
const { usedSize } = await session.send("Runtime.getHeapUsage");

/** What processes there are: their commands and parents. */
function processes() {
  const all = new Map();
  for (const pid of readdirSync("/proc").filter((p) => /^\d+$/.test(p))) {
    try {
      const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      all.set(pid, { command: readFileSync(`/proc/${pid}/cmdline`, "utf8"), parent });
    } catch {
      // It has ended meanwhile.
    }
  }
  return all;
}

/** Proportional memory of the renderer and of the whole browser in kB, by /proc: of the process with our profile, and all below it. */
function memory() {
  const all = processes();
  const isOurs = (pid) => {
    for (let at = all.get(pid); at; at = all.get(at.parent)) if (at.command.includes(profile)) return true;
    return false;
  };
  let [renderer, browser] = [0, 0];
  for (const [pid, { command }] of all) {
    if (!command.includes("chrom") || !isOurs(pid)) continue;
    const kb = Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
    browser += kb;
    if (command.includes("--type=renderer")) renderer = Math.max(renderer, kb);
  }
  return { renderer, browser };
}
const { renderer, browser } = memory();
console.log(`memory: script heap ${(usedSize / 1e6).toFixed(1)} MB, renderer ${(renderer / 1e3).toFixed(0)} MB, all of the browser ${(browser / 1e3).toFixed(0)} MB; with a blank page ${(blank.renderer / 1e3).toFixed(0)} and ${(blank.browser / 1e3).toFixed(0)} MB`);
if (problems.length > 0) console.log(problems);
await close();
