// A real recording in which threads, processes and the file itself are called what would be markup, script or a terminal's escape:
// in the view (HOLDUP_URL) and in a report from disk (HOLDUP_REPORT) all of it is text.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";

const { HOLDUP_URL: view, HOLDUP_REPORT: report } = process.env;
let browser;
before(async () => {
  browser = await open();
});
after(async () => browser?.close());

/** Nothing of a name became an element or was run, and nothing would act on a terminal that it is copied to. */
async function isText(page, where) {
  const found = await page.evaluate(() => ({
    elements: document.querySelectorAll("#app img, #app script, #app iframe, #app svg, img[src=x]").length,
    hit: globalThis.hit ?? null,
    escapes: /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.exec(document.body.innerText)?.[0] ?? null,
  }));
  assert.deepEqual(found, { elements: 0, hit: null, escapes: null }, where);
}

/** Goes through all that shows names. */
async function look(page) {
  await page.waitForSelector(".card");
  await page.keyboard.press("j");
  await page.waitForSelector("table.hops tbody tr");
  await isText(page, "the causes and the chain");
  const title = await page.locator(".card .title").first().textContent();
  assert.ok(title.includes("<img src=x"), `the name is shown as it is: ${title}`);
  const views = [["1", ".label"], ["2", ".processes .label"], ["3", ".grouped tbody .figure"], ["4", ".flame .scroll canvas"], ["5", "tr[data-hot]"]];
  for (const [key, something] of views) {
    await page.keyboard.press(key);
    await page.locator(something).first().waitFor();
    await page.waitForFunction(() => globalThis.holdupBusy() === 0);
    await isText(page, `view ${key}`);
  }
  // What the mouse points at is told, too.
  await page.keyboard.press("4");
  const box = await page.locator(".flame .scroll").boundingBox();
  await page.mouse.move(box.x + box.width / 3, box.y + 8);
  await page.locator(".told b", { hasText: "<" }).waitFor();
  await isText(page, "a frame of the flame graph");
  await page.keyboard.press("/");
  await page.keyboard.type("img");
  await page.getByRole("option").first().waitFor();
  await isText(page, "the search");
  await page.keyboard.press("Enter");
  await isText(page, "what was found");
}

const places = { view, report: report && pathToFileURL(report).href };
for (const [where, url] of Object.entries(places)) {
  test(`names in the ${where}`, async () => {
    assert.ok(url, `no address of the ${where}`);
    const { page, problems } = browser;
    await page.goto("about:blank");
    problems.length = 0;
    await page.goto(url);
    await look(page);
    // A policy that something ran into would be told on the console.
    assert.deepEqual(problems, []);
  });
}
