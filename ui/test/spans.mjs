// Why was this request slow? In a recording of the demo to which spans were added (HOLDUP_URL): a slow one is seen, chosen, and read, by mouse
// and by keyboard; HOLDUP_NONE is the same recording without spans.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./browser.mjs";

const { HOLDUP_URL: url, HOLDUP_NONE: none } = process.env;
let browser;
before(async () => {
  assert.ok(url && none, "HOLDUP_URL or HOLDUP_NONE is not set");
  browser = await open();
});
after(async () => browser?.close());

async function on(address, act) {
  const { page, problems } = browser;
  await page.goto("about:blank");
  problems.length = 0;
  await page.goto(address);
  await page.waitForSelector(".card");
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  await act(page);
  assert.deepEqual(problems, []);
}

const lane = (page, name) => page.locator(".scroll .label", { hasText: name }).first();
const shown = (page) => page.locator("header .window").textContent();

/** The lane of spans below a thread's. */
async function below(page, name) {
  const box = await lane(page, name).boundingBox();
  const spans = page.locator(".scroll .label.spans");
  for (const one of await spans.all()) {
    const at = await one.boundingBox();
    if (Math.abs(at.y - box.y - box.height) < 3) return at;
  }
  return assert.fail(`no spans below ${name}`);
}

async function readIt(page) {
  const drawer = page.locator(".drawer");
  await drawer.getByText("took 710 ms").waitFor();
  await drawer.getByText("the longest of 121").waitFor();
  await drawer.getByText("slow.c").first().waitFor();
  const piece = drawer.locator(".pieces tbody tr", { hasText: "bitmap-scan" }).first();
  await piece.getByText("find_free_block").waitFor();
  return piece;
}

test("by mouse alone", () =>
  on(url, async (page) => {
    await lane(page, "holdup").click();
    await lane(page, "compiler-*").click();
    await lane(page, "compiler-05").waitFor();
    await page.waitForFunction(() => globalThis.holdupBusy() === 0);
    const at = await below(page, "compiler-05");
    const width = (await page.locator(".lanes .scroll").boundingBox()).width - 232;
    // It lasts from 0.17 to 0.88 s of 1.05 s.
    const [x, y] = [at.x + 232 + (width * 0.5) / 1.05, at.y + 9];
    const all = await shown(page);
    await page.mouse.move(x, y);
    await page.getByRole("tooltip").getByText("the longest of 121").waitFor();
    await page.mouse.click(x, y);
    const piece = await readIt(page);
    assert.notEqual(await shown(page), all, "the window is the span's");
    await piece.getByRole("button").first().click();
    await page.locator(".label.on", { hasText: "bitmap-scan" }).waitFor();
  }));

test("by keyboard alone", () =>
  on(url, async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("compiler-05");
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".label.on", { hasText: "compiler-05" }).waitFor();
    await page.keyboard.press("l");
    await page.waitForFunction(() => document.activeElement?.getAttribute("data-focus") === "lanes");
    await page.keyboard.press("ArrowDown");
    await page.locator(".label.spans.on").waitFor();
    // From the middle of the recording back to the last one that began before it.
    await page.keyboard.press("ArrowLeft");
    await readIt(page);
    const all = await shown(page);
    await page.keyboard.press("Enter");
    await page.waitForFunction((before) => document.querySelector("header .window").textContent !== before, all);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.locator(".drawer").getByText("emit took 680 ms").waitFor();
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".drawer").count(), 0);
  }));

test("the slowest of each name, and what they have that the others have not", () =>
  on(url, async (page) => {
    const name = page.locator("[data-span-name]", { hasText: "compile" }).first();
    await name.getByText("of 121").waitFor();
    await name.locator(".head").focus();
    await page.keyboard.press("Enter");
    await name.locator(".headline", { hasText: /The slowest 2 % \(2 of 121, .*find_free_block/ }).waitFor();
    const first = name.locator(".slowest button").first();
    await first.getByText("slow.c").waitFor();
    const all = await shown(page);
    await first.focus();
    await page.keyboard.press("Enter");
    await readIt(page);
    assert.notEqual(await shown(page), all, "the window is the span's");
    await page.locator(".label.spans.on").waitFor();
    // What the slow ones have stays when its card is folded and opened again.
    const asked = await page.evaluate(() => globalThis.holdupTimings.filter((t) => t.gesture.startsWith("slow ")).length);
    await name.locator(".head").click();
    await name.locator(".head").click();
    await name.locator(".headline").waitFor();
    assert.equal(await page.evaluate(() => globalThis.holdupTimings.filter((t) => t.gesture.startsWith("slow ")).length), asked);
  }));

test("a link brings the span back", () =>
  on(`${url}#sp=0`, async (page) => {
    await page.locator(".drawer").getByText(/took/).first().waitFor();
  }));

test("names of spans are text, whatever is in them", () =>
  on(url, async (page) => {
    await lane(page, "holdup").click();
    await lane(page, "compiler-*").click();
    await lane(page, "compiler-07").waitFor();
    await page.waitForFunction(() => globalThis.holdupBusy() === 0);
    const at = await below(page, "compiler-07");
    const width = (await page.locator(".lanes .scroll").boundingBox()).width - 232;
    await page.mouse.click(at.x + 232 + (width * 0.95) / 1.05, at.y + 9);
    await page.locator(".drawer").getByText("<img src=x").first().waitFor();
    assert.equal(await page.locator("#app img, #app script").count(), 0);
    assert.equal(await page.evaluate(() => globalThis.hit), undefined);
  }));

test("spans can be hidden, and a recording without any has no lanes of them", async () => {
  await on(url, async (page) => {
    await page.locator(".label.spans").first().waitFor();
    await page.getByRole("checkbox", { name: "spans" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".label.spans").length === 0);
  });
  await on(none, async (page) => {
    await page.locator(".scroll .label").first().waitFor();
    assert.equal(await page.locator(".label.spans").count(), 0);
    assert.equal(await page.getByRole("checkbox", { name: "spans" }).count(), 0);
    const how = page.locator("details.idle", { hasText: "No spans" });
    await how.locator("summary").focus();
    await page.keyboard.press("Enter");
    await how.getByText("--span net").waitFor();
  });
});
