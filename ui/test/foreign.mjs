// The first story on a trace of another tool, in the view (HOLDUP_URL) and in a report from disk (HOLDUP_REPORT): the dip, the
// culprit and the chain to the holder. The code is not in such a file, and the page says so.
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { open } from "./browser.mjs";
import { tell } from "./ways.mjs";
import * as story from "./story.mjs";

const expect = { culprit: "bitmap-scan", confidence: process.env.HOLDUP_CONFIDENCE };
let browser;
before(async () => {
  browser = await open();
});
after(async () => browser?.close());

const places = { view: process.env.HOLDUP_URL, report: process.env.HOLDUP_REPORT && pathToFileURL(process.env.HOLDUP_REPORT).href };
tell(() => browser, places, { mouse: (page) => story.byMouse(page, expect), keyboard: (page) => story.byKeyboard(page, expect) });
