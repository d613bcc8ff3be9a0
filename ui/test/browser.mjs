// A browser of its own for each test run: nothing of it is kept, and it speaks to nobody but the page's server.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const executablePath = process.env.HOLDUP_CHROMIUM ?? PLACES.find(existsSync);

const ARGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--hide-scrollbars=false",
];

/** Opens a browser with a profile of its own. `close` takes both away. */
export async function open({ width = 1280, height = 800, dark = false } = {}) {
  if (!executablePath) throw new Error("there is no Chromium: install the package chromium");
  const profile = mkdtempSync(join(tmpdir(), "holdup-browser-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath, args: ARGS, headless: true, viewport: { width, height }, colorScheme: dark ? "dark" : "light",
    permissions: ["clipboard-read", "clipboard-write"],
  });
  // A machine that builds meanwhile is slow, and no test is about that.
  context.setDefaultTimeout(180_000);
  const page = context.pages()[0] ?? (await context.newPage());
  const problems = [];
  page.on("pageerror", (e) => problems.push(`error: ${e.message}`));
  // A question that a newer one took the place of is answered with 409: on a slow machine that is no problem of the page.
  page.on("console", (m) => m.type() === "error" && !m.text().includes("status of 409") && problems.push(`console: ${m.text()}`));
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { page, context, problems, close, profile };
}
