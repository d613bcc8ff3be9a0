// The first story on a real recording of `holdup demo`, with the real server: HOLDUP_URL is the page's address.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";
import * as story from "./story.mjs";

const expect = { culprit: "bitmap-scan", function: "find_free_block" };
const url = process.env.HOLDUP_URL;
let browser;
before(async () => {
  assert.ok(url, "HOLDUP_URL is not set");
  browser = await open();
});
after(async () => browser?.close());

for (const [how, act] of [["mouse", story.byMouse], ["keyboard", story.byKeyboard]]) {
  test(`by ${how} alone`, async () => {
    const { page, problems } = browser;
    await page.goto("about:blank");
    problems.length = 0;
    await page.goto(url);
    await act(page, expect);
    assert.deepEqual(problems, []);
  });
}

test("every view has something to show, and no error", async () => {
  const { page, problems } = browser;
  await page.goto("about:blank");
  problems.length = 0;
  await page.goto(url);
  await page.waitForSelector(".card");
  await page.keyboard.press("j");
  for (const [key, something] of [["1", ".label"], ["2", ".processes .label"], ["3", ".grouped tbody .figure"], ["4", ".flame .scroll canvas"], ["5", "tr[data-hot]"]]) {
    await page.keyboard.press(key);
    await page.locator(something).first().waitFor();
    assert.equal(await page.locator("#view .bad").count(), 0, `view ${key}`);
  }
  assert.deepEqual(problems, []);
});
