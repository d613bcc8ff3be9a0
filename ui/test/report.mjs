// The first story in a report that was opened from disk, with the network off: HOLDUP_REPORT is the file. HOLDUP_DROP and
// HOLDUP_TRACE are the page without a trace, and a recording to drop there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";
import * as story from "./story.mjs";

const expect = { culprit: process.env.HOLDUP_CULPRIT ?? "bitmap-scan", function: process.env.HOLDUP_FUNCTION ?? "find_free_block" };
const { HOLDUP_REPORT: report, HOLDUP_DROP: drop, HOLDUP_TRACE: trace } = process.env;
let browser;
const asked = [];
before(async () => {
  assert.ok(report, "HOLDUP_REPORT is not set");
  browser = await open();
  await browser.context.setOffline(true);
  browser.page.on("request", (r) => /^(file|blob|data):/.test(r.url()) || asked.push(r.url()));
});
after(async () => browser?.close());

async function load(file) {
  const { page, problems } = browser;
  await page.goto("about:blank");
  problems.length = 0;
  await page.goto(pathToFileURL(file).href);
  return page;
}

for (const [how, act] of [["mouse", story.byMouse], ["keyboard", story.byKeyboard]]) {
  test(`a report from disk, by ${how} alone`, async () => {
    const page = await load(report);
    await act(page, expect);
    assert.deepEqual(browser.problems, []);
    assert.deepEqual(asked, []);
  });
}

test("a recording is dropped and read", { skip: !drop || !trace }, async () => {
  const page = await load(drop);
  await page.locator("input[type=file]").setInputFiles(trace);
  await page.waitForSelector(".card");
  await page.getByText(expect.culprit).first().waitFor();
  assert.deepEqual(browser.problems, []);
  assert.deepEqual(asked, []);
});

test("what is no recording is refused in words", { skip: !drop }, async () => {
  const page = await load(drop);
  await page.locator("input[type=file]").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("no trace at all") });
  await page.locator(".bad").getByText("a.txt").waitFor();
});
