// The first story on real traces of Windows and Android, as far as each can tell it: where CPUs stand still, who is named for it, the chain as far
// as wake-ups are known, and what is said of the code that is not there. HOLDUP_URL is the view, HOLDUP_REPORT the report; HOLDUP_SAYS what the cause's
// title says, HOLDUP_CHAIN is set where there are wake-ups.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";
import { tell } from "./ways.mjs";

const { HOLDUP_URL: view, HOLDUP_REPORT: report, HOLDUP_SAYS: says, HOLDUP_CHAIN: chained } = process.env;
let browser;
before(async () => {
  browser = await open();
});
after(async () => browser?.close());

/** Whoever asked at the gap is told its cause, or that none is known there; then `choose` takes the first that there is. */
async function named(page, choose) {
  const card = page.locator(".card.on");
  await card.or(page.getByText("No cause is known here.")).first().waitFor({ state: "attached" });
  if ((await card.count()) === 0) await choose();
  await card.waitFor();
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  assert.match(await card.locator(".title").textContent(), new RegExp(says));
  // What the graph says in that colour are losses.
  assert.deepEqual(await page.locator("#view .bad, .drawer .bad, .findings .bad").allInnerTexts(), [], "nothing failed");
}

/** Where wake-ups are known the chain leads on from who waits; where not, that is said before all else. */
async function chain(page) {
  if (chained) {
    assert.ok((await page.locator("table.hops tbody tr").count()) >= 2, "somebody ended the wait");
  } else {
    await page.getByText("There are no wake-ups in this trace: who ended a wait is not known.").waitFor();
    assert.equal(await page.locator("table.hops").count(), 0, "what ran has no chain");
  }
}

/** Nobody has the code of such a trace: what is known is shown, or why there is nothing is said in words. */
async function code(page, open) {
  await open();
  await page.locator(".code-view tr[data-hot], .code-view .note", { hasText: /\S/ }).first().waitFor();
}

async function gap(page) {
  await page.waitForSelector(".card");
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  const first = await page.evaluate(() => globalThis.holdupFirst());
  // Without wake-ups nobody is known to have waited for anybody, and there is no place where a cause stands.
  assert.ok(first !== null || !chained, "the page tells where the first cause is");
  const at = first ?? 0.5;
  assert.ok(at >= 0 && at <= 1, `${at} of the width`);
  const box = await page.locator("[data-focus=use]").boundingBox();
  return { at, box };
}

async function byMouse(page) {
  const { at, box } = await gap(page);
  await page.mouse.click(box.x + box.width * at, box.y + 30);
  await named(page, () => page.locator(".card").first().click());
  await chain(page);
  await code(page, () => page.locator("#tab-code").click());
}

async function byKeyboard(page) {
  const { at, box } = await gap(page);
  await page.keyboard.press("g");
  const steps = Math.round((box.width * (at - 0.5)) / 8);
  for (let i = 0; i < Math.abs(steps); i++) await page.keyboard.press(steps < 0 ? "ArrowLeft" : "ArrowRight");
  await page.keyboard.press("Enter");
  await named(page, () => page.keyboard.press("j"));
  await chain(page);
  await code(page, () => page.keyboard.press("c"));
}

const places = { view, report: report && pathToFileURL(report).href };
tell(() => browser, places, { mouse: byMouse, keyboard: byKeyboard });
