// A story told in each place (an address of the view, of a report) in each way (by mouse, by keyboard): one test for each.
import assert from "node:assert/strict";
import { test } from "node:test";

export function tell(browser, places, ways) {
  for (const [where, url] of Object.entries(places)) {
    for (const [how, act] of Object.entries(ways)) {
      test(`${where}, by ${how} alone`, async () => {
        assert.ok(url, `no address of the ${where}`);
        const { page, problems } = browser();
        await page.goto("about:blank");
        problems.length = 0;
        await page.goto(url);
        await act(page);
        assert.deepEqual(problems, []);
      });
    }
  }
}
