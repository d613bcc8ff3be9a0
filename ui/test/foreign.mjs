// The first story on a trace of another tool, in the view (HOLDUP_URL) and in a report from disk (HOLDUP_REPORT): the dip, the
// culprit and the chain to the holder. The code is not in such a file, and the page says so.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";
import * as story from "./story.mjs";

const expect = { culprit: "bitmap-scan", confidence: process.env.HOLDUP_CONFIDENCE };
let browser;
before(async () => {
  browser = await open();
});
after(async () => browser?.close());

const places = { view: process.env.HOLDUP_URL, report: process.env.HOLDUP_REPORT && pathToFileURL(process.env.HOLDUP_REPORT).href };
for (const [where, url] of Object.entries(places)) {
  for (const [how, act] of [["mouse", story.byMouse], ["keyboard", story.byKeyboard]]) {
    test(`${where}, by ${how} alone`, async () => {
      assert.ok(url, `no address of the ${where}`);
      const { page, problems } = browser;
      await page.goto("about:blank");
      problems.length = 0;
      await page.goto(url);
      await act(page, expect);
      assert.deepEqual(problems, []);
    });
  }
}
