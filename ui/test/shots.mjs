// Pictures of every view, for docs/: HOLDUP_URL is the page of a demo, HOLDUP_PAIR that of two recordings, HOLDUP_PLOTS that
// of a result of lab or scale, HOLDUP_SPANS that of a recording with spans (all three may be left out). `node test/shots.mjs FOLDER` writes 1280×800 and 1920×1080, light and
// dark. Look at each: nothing may be cut off or lie over something else.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { open } from "./browser.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("where to? node test/shots.mjs FOLDER");
mkdirSync(folder, { recursive: true });

/** Nothing is being asked any more. */
async function settled(page) {
  let last = -1;
  for (let i = 0; i < 60; i++) {
    const [asked, busy] = await page.evaluate(() => [globalThis.holdupTimings.length, globalThis.holdupBusy()]);
    if (asked === last && busy === 0) return;
    last = asked;
    await page.waitForTimeout(350);
  }
}

async function start(page, url) {
  await page.goto("about:blank");
  await page.goto(url);
}

async function clickGap(page) {
  await page.waitForSelector(".card");
  await settled(page);
  const box = await page.locator("[data-focus=use]").boundingBox();
  await page.mouse.click(box.x + box.width * (await page.evaluate(() => globalThis.holdupFirst())), box.y + 30);
  await page.locator("table.hops tbody tr").first().waitFor();
}

/** Each view: how it is reached. */
const VIEWS = {
  first: async (page) => void (await page.waitForSelector(".card")),
  timeline: clickGap,
  lanes: async (page) => {
    await clickGap(page);
    await page.keyboard.press("z");
    await page.keyboard.press("n");
  },
  cpus: async (page) => {
    await page.waitForSelector(".card");
    await page.getByRole("button", { name: "CPUs", exact: true }).click();
  },
  processes: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("2");
  },
  table: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("3");
    await page.locator("tbody .twisty").first().click();
    await page.waitForTimeout(400);
    await page.locator("tbody tr[aria-level='2'] .twisty").first().click();
  },
  flame: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("j");
    await page.keyboard.press("4");
  },
  cpuflame: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("4");
    await page.getByRole("button", { name: "On CPU" }).click();
  },
  code: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("j");
    await page.keyboard.press("c");
    await page.waitForSelector("tr[data-hot]");
  },
  search: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("/");
    await page.keyboard.type("comp");
  },
  help: async (page) => {
    await page.waitForSelector(".card");
    await page.keyboard.press("?");
  },
};

const only = (process.env.HOLDUP_SHOTS ?? "").split(",").filter(Boolean);
const sizes = process.env.HOLDUP_SIZES === "small" ? [[1280, 800]] : [[1280, 800], [1920, 1080]];
for (const [width, height] of sizes) {
  for (const dark of [false, true]) {
    const { page, problems, close } = await open({ width, height, dark });
    const shoot = async (name, url, go) => {
      if (!url || (only.length > 0 && !only.includes(name))) return;
      await start(page, url);
      await go(page);
      await page.mouse.move(2, height - 2);
      await settled(page);
      await page.screenshot({ path: join(folder, `${name}-${width}-${dark ? "dark" : "light"}.png`) });
    };
    for (const [name, go] of Object.entries(VIEWS)) await shoot(name, process.env.HOLDUP_URL, go);
    await shoot("compare", process.env.HOLDUP_PAIR, async (page) => {
      await page.waitForSelector(".card, .findings .note");
      await page.keyboard.press("6");
      await page.waitForSelector(".compare .summary");
    });
    await shoot("spans", process.env.HOLDUP_SPANS, async (page) => {
      const name = page.locator("[data-span-name]").first();
      await name.locator(".head").click();
      await name.locator(".headline").waitFor();
      await name.locator(".slowest button").first().click();
      await page.waitForSelector(".pieces");
    });
    await shoot("plots", process.env.HOLDUP_PLOTS, (page) => page.waitForSelector(".plots figure"));
    if (problems.length > 0) console.error(problems);
    await close();
  }
}
