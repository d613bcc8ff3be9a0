// The first story: a person sees that CPUs stand still, asks, reads the culprit, follows the chain to the holder, and sees
// the hot instruction. `expect` says what there is to be read: `function` is missing where the trace cannot tell the code.
import assert from "node:assert/strict";

/** In the middle of the culprit's longest stretch, in pixels of the graph. */
async function gap(page, expect) {
  await page.waitForSelector(".card");
  const plot = page.locator("[data-focus=use]");
  const box = await plot.boundingBox();
  const span = await page.evaluate((who) => globalThis.holdupFirst?.(who) ?? null, expect.culprit);
  assert.ok(span, "the page tells where the first cause is");
  // What is clicked is answered with what the graph shows there: it has to be the one with the causes.
  await page.waitForFunction(() => globalThis.holdupBusy() === 0);
  return { plot, box, x: box.x + box.width * span };
}

async function readCulprit(page, expect) {
  const card = page.locator(".card.on");
  await card.waitFor();
  await card.getByText(expect.culprit).first().waitFor();
  await card.getByText(expect.confidence ?? "high").first().waitFor();
}

async function seeInstruction(page, expect) {
  await page.locator(".code-view h2.function", { hasText: expect.function }).waitFor();
  const hot = page.locator("tr[data-hot]");
  await hot.waitFor();
  assert.match(await hot.locator(".heat .figure").textContent(), /\d+ %/);
  assert.ok(await inside(hot, page.locator(".pane.asm")), "the hot instruction is in sight");
}

/** A trace without code says so, and shows the addresses that it has. */
async function seeNoInstruction(page) {
  await page.locator(".code-view").getByText("The code is not in the recording").waitFor();
  await page.locator(".code-view").getByText("0x").first().waitFor();
}

async function inside(row, pane) {
  const [a, b] = [await row.boundingBox(), await pane.boundingBox()];
  return a !== null && b !== null && a.y >= b.y - 1 && a.y + a.height <= b.y + b.height + 1;
}

/** No key is pressed. */
export async function byMouse(page, expect) {
  const { box, x } = await gap(page, expect);
  await page.mouse.click(x, box.y + 30);
  await readCulprit(page, expect);
  const hops = page.locator("table.hops tbody tr");
  await hops.first().waitFor();
  const holder = hops.filter({ hasText: expect.culprit }).last();
  await holder.getByRole("button", { name: expect.culprit }).click();
  await page.locator(".drawer .here").getByText(expect.culprit).first().waitFor();
  if (!expect.function) {
    await page.locator("#tab-code").click();
    return seeNoInstruction(page);
  }
  await holder.getByRole("button", { name: expect.function }).click();
  await seeInstruction(page, expect);
}

/** The mouse is not touched. */
export async function byKeyboard(page, expect) {
  const { box, x } = await gap(page, expect);
  await page.keyboard.press("g");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-focus")), "use");
  // The cursor begins in the middle of what is shown; each step is 8 pixels.
  const steps = Math.round((x - box.x - box.width / 2) / 8);
  for (let i = 0; i < Math.abs(steps); i++) await page.keyboard.press(steps < 0 ? "ArrowLeft" : "ArrowRight");
  await page.keyboard.press("Enter");
  await readCulprit(page, expect);
  const hops = page.locator("table.hops tbody tr");
  await hops.first().waitFor();
  for (let i = 0; i < 8 && !(await page.locator("table.hops tr.on", { hasText: expect.culprit }).count()); i++) await page.keyboard.press("n");
  await page.locator(".drawer .here").getByText(expect.culprit).first().waitFor();
  await page.keyboard.press("c");
  await (expect.function ? seeInstruction(page, expect) : seeNoInstruction(page));
}
