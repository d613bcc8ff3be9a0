// Numbers as text, links, axes, frames.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ticks, timeTicks, toTime, toX } from "../src/graph/axis";
import { calm } from "../src/graph/stack";
import { unpack } from "../src/host/frame";
import { Cancelled } from "../src/host/host";
import { cell, count, csvLine, instant, percent, span } from "../src/lib/format";
import { clamp, telling } from "../src/state/nav";
import { DEFAULT_VIEW, type View } from "../src/state/store";
import { placeOf } from "../src/views/span";
import { read, write } from "../src/state/url";
import { clean, placed, subject } from "../src/table/spec";
import { pack } from "./mock.mjs";

test("lengths of time have three digits and a unit", () => {
  const said = [0, 7, 999, 1_000, 12_345, 680_000_000, 2_040_000_000, 119.4e9, 192e9, 7_384e9].map(span);
  assert.deepEqual(said, ["0 s", "7.00 ns", "999 ns", "1.00 µs", "12.3 µs", "680 ms", "2.04 s", "119 s", "3 min 12 s", "2 h 3 min 4 s"]);
  assert.equal(span(999_999), "1.00 ms");
  assert.equal(span(Number.NaN), "–");
});

test("instants are as precise as what is seen", () => {
  assert.equal(instant(912_345_678, 2e9), "0.912 s");
  assert.equal(instant(912_345_678, 1e6), "912.346 ms");
  assert.equal(instant(123_912_345_678, 1e6), "123.912346 s");
});

test("counts, shares and cells", () => {
  assert.deepEqual([1234, 12_345_678, 0.5].map(count), ["1,234", "12.3 M", "0.50"]);
  assert.deepEqual([0, 0.0001, 0.0555, 0.5, 1].map(percent), ["0 %", "< 0.1 %", "5.5 %", "50 %", "100 %"]);
  assert.deepEqual([cell(5e6, "ns"), cell(null, "ns"), cell(27006, "number"), cell("x", "text")], ["5.00 ms", "–", "27006", "x"]);
});

test("a cell that a spreadsheet would run is text in CSV", () => {
  assert.equal(csvLine(["=1+1", 'a "b", c', -3, null]), `'=1+1,"a ""b"", c",-3,\n`);
});

test("marks are round, and inside", () => {
  assert.deepEqual(ticks([0.3, 2.2], 4), [0.5, 1, 1.5, 2]);
  for (const window of [[0, 2e9], [6.3e8, 6.31e8], [5e11, 5e11 + 700]] as const) {
    const marks = timeTicks(window, 900);
    assert.ok(marks.length >= 2 && marks.every((m) => m.at >= window[0] && m.at <= window[1]), JSON.stringify(marks));
    assert.equal(new Set(marks.map((m) => m.text)).size, marks.length);
  }
  assert.equal(toTime([10, 30], 100, toX([10, 30], 100, 17)), 17);
});

test("a link holds the view", () => {
  const view: View = {
    ...DEFAULT_VIEW,
    trace: 1,
    window: [630_000_000, 1_310_000_000],
    finding: "f2",
    tab: "flame",
    lanes: "cpu",
    open: ["p1", "n1.2"],
    point: { row: "t7", time: 800_000_000 },
    at: 800_000_000,
    chainOf: { row: "t7", time: 800_000_000 },
    table: { table: "locks", preset: "", by: ["lock"], show: ["count"], where: 'thread == "a&b#c"', sort: ["-count"] },
    flame: { of: "off", callers: true, leftHeavy: false, differential: true, search: "a.b" },
    code: { function: "std::vec<a, b>::push", module: "/lib/x.so" },
    against: 2,
    selection: { process: "cc1", thread: "<script>" },
  };
  assert.deepEqual(read(`#${write(view)}`), view);
  assert.deepEqual(read(`#${write(DEFAULT_VIEW)}`), DEFAULT_VIEW);
});

test("a link that makes no sense is a link to the whole", () => {
  for (const hash of ["w=9-1&t=-1&v=<script>&f=../x", "w=abc&tb={&fl=zzz&s=[1]&c=null&p=@", "%", "tb=%7B%22table%22:5%7D"]) {
    assert.deepEqual(read(`#${hash}`), DEFAULT_VIEW, hash);
  }
});

test("windows stay within the recording", () => {
  assert.deepEqual(clamp([-50, 1000], [0, 5000]), [0, 1050]);
  assert.deepEqual(clamp([4800, 5900], [0, 5000]), [3900, 5000]);
  assert.deepEqual(clamp([100, 101], [0, 5000]), [100, 600]);
  assert.deepEqual(clamp([Number.NaN, Number.NaN], [0, 5000]), [0, 5000].map((v) => v));
});

test("of scattered windows the longest is shown, of neighbours all", () => {
  assert.deepEqual(telling([[1, 2]], 10e9), [0.85e9, 2.15e9]);
  assert.deepEqual(telling([[1, 2], [2.5, 3], [3.2, 4]], 10e9), [0.55e9, 4.45e9]);
  assert.deepEqual(telling([[1, 1.01], [50, 50.1], [80, 80.01]], 100e9), [49.985e9, 50.115e9]);
  assert.equal(telling([], 5), null);
});

test("columns move within a list", () => {
  assert.deepEqual(placed(["a", "b", "c"], "a", 2), ["b", "a", "c"]);
  assert.deepEqual(placed(["a", "b", "c"], "c", 0), ["c", "a", "b"]);
  assert.deepEqual(placed(["a", "b"], "b"), ["a"]);
  assert.deepEqual(["sum:wait", "p99:ready", "depth:3", "count"].map(subject), ["wait", "ready", "depth:3", "count"]);
  const info = { name: "waits", doc: "", columns: [{ name: "depth:N", unit: "text", doc: "" }], default_columns: [], default_measures: [] };
  assert.deepEqual(clean({ table: "x", preset: "", by: ["depth:3", "gone"], show: [], where: "", sort: [] }, info).by, ["depth:3"]);
});

const bytes = (b: Buffer): ArrayBuffer => new Uint8Array(b).buffer;

test("an answer comes apart as it was packed", () => {
  const answer = unpack<{ px: number }>(bytes(pack({ px: 3 }, { a: { type: "u8", values: [1, 2, 3] }, b: { type: "f64", values: [0.5] } })));
  assert.equal(answer.json.px, 3);
  assert.deepEqual([...answer.u8("a")], [1, 2, 3]);
  assert.deepEqual([...answer.f64("b")], [0.5]);
  assert.throws(() => answer.u8("c"), /no part c/);
});

test("a damaged answer is an error in words", () => {
  const whole = pack({ px: 3 }, { a: { type: "f64", values: [1, 2, 3] } });
  for (let n = 0; n < whole.length; n++) assert.throws(() => unpack(bytes(whole.subarray(0, n))), Error);
  assert.throws(() => unpack(bytes(pack({ error: "no such row" }))), /no such row/);
  assert.throws(() => unpack(bytes(pack({ cancelled: true }))), Cancelled);
});

test("a line that would be a black ground is averaged, a calm one stays", () => {
  const sum = (v: Float32Array) => v.reduce((a, b) => a + b, 0);
  const steps = Float32Array.from({ length: 640 }, (_, i) => (i < 300 ? 0 : 1));
  assert.equal(calm(steps, 1, 100), steps);
  const wild = Float32Array.from({ length: 640 }, (_, i) => i % 2);
  const calmer = calm(wild, 1, 100);
  assert.equal(sum(calmer), sum(wild));
  assert.ok(calmer.every((v) => v === 0.5));
});

test("a span's place among all of its name is never more than it is", () => {
  const of = (rank: number, count: number, outcome = "complete") => placeOf({ rank, count, outcome } as Parameters<typeof placeOf>[0]);
  assert.deepEqual([of(1, 1), of(1, 640), of(3, 640), of(11, 640), of(13, 100_000), of(500, 1000)], [
    "the only one of its name", "the longest of 640", "the 3rd longest of 640", "the 11th longest of 640", "slower than 99.9 % of 100,000", "slower than 50 % of 1,000",
  ]);
  assert.equal(of(0, 640, "open"), "not over when the recording ended");
});
