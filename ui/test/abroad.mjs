// The first story on real traces of Windows and Android, as far as each can tell it: where CPUs stand still, who is named for it, the chain as far
// as wake-ups are known, and what is said of the code that is not there. HOLDUP_URL is the view, HOLDUP_REPORT the report.
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

/** What the cause and the page must agree on: who is named at the left is named below, in the chain, and in the lanes. */
async function named(page) {
  const card = page.locator(".card.on");
  await card.waitFor();
  assert.match(await card.locator(".title").textContent(), /\S/);
  await page.locator(".drawer").waitFor();
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  assert.equal(await page.locator(".bad:visible").count(), 0, "nothing failed");
}

/** The chain leads somewhere, or it is said why there is none. */
async function chain(page) {
  const hops = page.locator("table.hops tbody tr");
  const [there, why] = [await hops.count(), await page.locator(".drawer").innerText()];
  assert.ok(there > 0 || /no|not/.test(why), why);
}

/** Nobody has the code of such a trace: what is known is shown, and the rest is said in words. */
async function code(page, open) {
  await open();
  const shown = page.locator(".code-view tr[data-hot], .code-view .note");
  await shown.first().waitFor();
}

async function gap(page) {
  await page.waitForSelector(".card");
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  const at = await page.evaluate(() => globalThis.holdupFirst());
  assert.ok(at >= 0 && at <= 1, "the page tells where the first cause is");
  const box = await page.locator("[data-focus=use]").boundingBox();
  return { at, box };
}

async function byMouse(page) {
  const { at, box } = await gap(page);
  await page.mouse.click(box.x + box.width * at, box.y + 30);
  await named(page);
  await chain(page);
  await code(page, () => page.locator("#tab-code").click());
}

async function byKeyboard(page) {
  const { at, box } = await gap(page);
  await page.keyboard.press("g");
  const steps = Math.round((box.width * (at - 0.5)) / 8);
  for (let i = 0; i < Math.abs(steps); i++) await page.keyboard.press(steps < 0 ? "ArrowLeft" : "ArrowRight");
  await page.keyboard.press("Enter");
  await named(page);
  await chain(page);
  await code(page, () => page.keyboard.press("c"));
}

const places = { view, report: report && pathToFileURL(report).href };
for (const [where, url] of Object.entries(places)) {
  for (const [how, act] of [["mouse", byMouse], ["keyboard", byKeyboard]]) {
    test(`${where}, by ${how} alone`, async () => {
      assert.ok(url, `no address of the ${where}`);
      const { page, problems } = browser;
      await page.goto("about:blank");
      problems.length = 0;
      await page.goto(url);
      await act(page);
      assert.deepEqual(problems, []);
    });
  }
}
