// The page in a browser, with answers that are made up: stories by mouse and by keyboard, hostile names, errors, links.
// node --test test/page.mjs; needs Chromium.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";
import { pack, serve } from "./mock.mjs";
import * as story from "./story.mjs";

let browser;
before(async () => {
  browser = await open();
});
after(async () => browser?.close());

/** Opens the page on a server of its own, and looks afterwards that nothing went wrong in it. */
async function on(options, act) {
  const server = await serve(options);
  const { page, problems } = browser;
  await page.goto("about:blank");
  problems.length = 0;
  try {
    await page.goto(server.url + (options.hash ?? ""));
    await act(page);
    assert.deepEqual(problems, []);
  } finally {
    // Whoever still asks would be refused.
    await page.goto("about:blank");
    server.close();
  }
}

test("the first story, by mouse alone", () => on({}, (page) => story.byMouse(page, { culprit: "bitmap-scan", function: "find_free_block" })));

test("the first story, by keyboard alone", () => on({}, (page) => story.byKeyboard(page, { culprit: "bitmap-scan", function: "find_free_block" })));

test("names are text, whatever is in them", async () => {
  const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>"'&\u001b[31m{{7*7}}`;
  const twist = (q, answer) => {
    const put = (v, key) => {
      if (typeof v === "string") return KEEP.has(key) ? v : evil;
      if (Array.isArray(v)) return v.map((x) => put(x, key));
      if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, put(x, k)]));
      return v;
    };
    // What the page steers by stays.
    const KEEP = new Set(["id", "row", "ids", "series", "unit", "kind", "confidence", "by", "columns", "table", "culprit_rows", "default_columns", "default_measures", "schema", "role"]);
    return put(answer, "");
  };
  await on({ twist, traces: [{ id: 0, name: evil, kind: "trace" }, { id: 1, name: evil, kind: "trace" }] }, async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("j");
    await page.waitForSelector(".hops");
    for (const tab of "123456") {
      await page.keyboard.press(tab);
      await page.waitForTimeout(150);
      assert.equal(await page.locator("#app img, #app script, #app iframe").count(), 0);
    }
    assert.equal(await page.evaluate(() => globalThis.hit), undefined);
    assert.ok((await page.locator(".card .title").first().textContent()).includes("<script>"), "the name is shown as it is");
    // A policy that something ran into would have been told on the console.
  });
});

test("an error is told where it happened, and the rest of the page goes on", async () => {
  const twist = (q, answer) => (q.ask === "table" ? pack({ error: "table waits has no column nonsense" }) : answer);
  await on({ twist }, async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("3");
    await page.getByText("table waits has no column nonsense").waitFor();
    await page.keyboard.press("1");
    await page.waitForSelector(".label");
  });
});

test("a trace that cannot be read is told, with what to do", async () => {
  const traces = [{ id: 0, name: "cut.holdup", kind: "trace", error: "cut.holdup: ends after 12 bytes; copy it again" }];
  await on({ traces }, (page) => page.getByText("ends after 12 bytes; copy it again").first().waitFor());
});

test("a server that is gone is told, with what to do", async () => {
  const server = await serve();
  const { page, problems } = browser;
  await page.goto(server.url);
  await page.waitForSelector(".card");
  server.close();
  await page.route("**/api/ask", (route) => route.abort());
  await page.keyboard.press("3");
  await page.getByText("Start it again with").first().waitFor();
  await page.unroute("**/api/ask");
  problems.length = 0;
});

test("nothing was held up: the page says so, and what ran", async () => {
  const twist = (q, answer) => (q.ask === "explain" ? { ...answer, findings: [], stalls: [], culprit_rows: [] } : answer);
  await on({ twist }, (page) => page.getByText("Nothing held the program up.").waitFor());
});

test("where there was mostly nothing to do, that comes first", async () => {
  const idle = (f) => ({ ...f, id: "f9", kind: "idle-by-design", title: "1 thread of curl waited for work from nginx" });
  const twist = (mostly_idle) => (q, answer) =>
    q.ask === "explain" ? { ...answer, mostly_idle, findings: [...answer.findings, idle(answer.findings[0])], culprit_rows: [...answer.culprit_rows, null] } : answer;
  const first = (page) => page.locator(".findings .card .title").first().textContent();
  await on({ twist: twist(true) }, async (page) => {
    await page.waitForSelector(".card");
    assert.match(await first(page), /curl waited for work from nginx/);
  });
  await on({ twist: twist(false) }, async (page) => {
    await page.waitForSelector(".card");
    assert.doesNotMatch(await first(page), /curl/);
  });
});

test("an answer that comes before the first frame is shown, too", async () => {
  // An initialisation script stays for good: the page for this test alone.
  const { context } = browser;
  const [server, page] = [await serve(), await context.newPage()];
  try {
    await page.addInitScript(() => {
      globalThis.requestAnimationFrame = (frame) => setTimeout(() => frame(performance.now()), 300);
    });
    await page.goto(server.url);
    await page.waitForSelector(".card");
  } finally {
    await page.close();
    server.close();
  }
});

test("a link brings the view back", async () => {
  await on({}, async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("j");
    await page.keyboard.press("w");
    await page.keyboard.press("4");
    await page.waitForFunction(() => location.hash.includes("v=flame") && location.hash.includes("w="));
    const [hash, shown] = [await page.evaluate(() => location.hash), await page.locator("header .window").textContent()];
    await page.goto("about:blank");
    await on({ hash }, async (again) => {
      await again.waitForSelector(".card.on");
      assert.equal(await again.locator("header .window").textContent(), shown);
      assert.equal(await again.locator("#tab-flame").getAttribute("aria-selected"), "true");
    });
  });
});

test("zoom by wheel and drag, undo, back", async () => {
  await on({}, async (page) => {
    await page.waitForSelector(".card");
    const window = () => page.locator("header .window").textContent();
    const shows = (text) => page.waitForFunction((text) => document.querySelector("header .window").textContent === text, text);
    const changes = (text) => page.waitForFunction((text) => document.querySelector("header .window").textContent !== text, text);
    const box = await page.locator("[data-focus=use]").boundingBox();
    const all = await window();
    await page.mouse.move(box.x + box.width / 2, box.y + 50);
    await page.mouse.wheel(0, -300);
    await changes(all);
    const zoomed = await window();
    await page.mouse.move(box.x + 100, box.y + 50);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await changes(zoomed);
    await page.keyboard.press("u");
    await shows(zoomed);
    await page.keyboard.press("u");
    await shows(all);
  });
});

test("tables: groups open, columns cross the bar, CSV is on the clipboard", async () => {
  await on({}, async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("3");
    await page.locator("tbody .twisty").first().click();
    await page.getByText("compiler-01").first().waitFor();
    const heads = () => page.locator("thead th.by button").allTextContents();
    assert.deepEqual(await heads(), ["process", "thread", "kind"]);
    const now = (...names) => page.waitForFunction((n) => [...document.querySelectorAll("thead th.by button")].map((b) => b.textContent).join() === n, names.join());
    await page.locator("thead th.by button").nth(1).focus();
    await page.keyboard.press("Alt+ArrowLeft");
    await now("thread", "process", "kind");
    await page.locator("thead th.by button").nth(2).press("Delete");
    await now("thread", "process");
    await page.locator("thead th.by").nth(1).dragTo(page.locator("thead th.show").first());
    await now("thread");
    await page.getByText("Copy CSV").click();
    await page.getByText(/rows? copied/).waitFor();
    const csv = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(csv, /^process,thread,/);
  });
});

test("help and search open and close by keyboard; search goes where it says", async () => {
  await on({}, async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Help" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    // The field is there for the very next key.
    await page.keyboard.type("compiler-03");
    assert.equal(await page.getByRole("dialog").getByRole("searchbox").inputValue(), "compiler-03");
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".label.on", { hasText: "compiler-03" }).waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
  });
});
