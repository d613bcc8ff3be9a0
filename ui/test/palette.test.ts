// The palette: what lies beside each other can be told apart, also with each kind of colour blindness, and text is readable.
import assert from "node:assert/strict";
import { test } from "node:test";
import { STANDINGS } from "../src/lanes/spans";
import { DARK, heldLook, ink, LIGHT, PARTS, rgb, STATES, type Pattern, type Theme } from "../src/lib/palette";

const linear = (c: number) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
type Three = [number, number, number];
const times = (m: number[][], v: Three): Three => m.map((r) => r.reduce((s, x, i) => s + x * (v[i] ?? 0), 0)) as Three;

/** Machado, Oliveira and Fernandes 2009, severity 1. */
const BLIND: Record<string, number[][]> = {
  none: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function oklab(color: string, blind: string): Three {
  const seen = times(BLIND[blind] ?? [], rgb(color).map(linear) as Three).map((v) => Math.max(0, v)) as Three;
  const lms = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], seen);
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], lms.map(Math.cbrt) as Three);
}

const far = (a: string, b: string, blind: string) => Math.hypot(...oklab(a, blind).map((v, i) => v - (oklab(b, blind)[i] ?? 0)));

function contrast(a: string, b: string): number {
  const light = (c: string) => {
    const [r, g, bl] = rgb(c).map(linear) as Three;
    return 0.2126 * r + 0.7152 * g + 0.0722 * bl + 0.05;
  };
  const [x, y] = [light(a), light(b)];
  return Math.max(x, y) / Math.min(x, y);
}

for (const theme of [LIGHT, DARK]) {
  test(`${theme.name}: the parts of the sum differ for every kind of sight`, () => {
    const main: (keyof Theme)[] = ["busy", "spin", "other", "held", "noWork"];
    for (const blind of Object.keys(BLIND)) {
      for (const [i, a] of main.entries()) {
        for (const b of main.slice(i + 1)) {
          const d = far(theme[a], theme[b], blind);
          assert.ok(d > 0.09, `${a} and ${b} look alike (${d.toFixed(3)}), ${blind}`);
        }
      }
    }
  });

  test(`${theme.name}: text can be read`, () => {
    for (const [fg, bg, least] of [
      ["text", "panel", 7], ["text", "bg", 7], ["text", "accentBg", 7], ["text", "raised", 7], ["dim", "panel", 4.5], ["dim", "bg", 4.5], ["dim", "raised", 4.5],
      ["accent", "panel", 4.5], ["bad", "panel", 4.5], ["accent", "accentBg", 4.5],
    ] as [keyof Theme, keyof Theme, number][]) {
      const c = contrast(theme[fg], theme[bg]);
      assert.ok(c >= least, `${fg} on ${bg}: ${c.toFixed(2)} < ${least}`);
    }
  });
}

test("no two parts, and no two states of a lane, share both pattern and colour or height", () => {
  const looks = Object.values(PARTS).map((p) => `${p.key} ${p.pattern}`);
  assert.equal(new Set(looks).size, looks.length);
  const states = STATES.filter((s) => s.height > 0).map((s) => `${s.pattern} ${s.height} ${s.key}`);
  assert.equal(new Set(states).size, states.length);
  for (const [i, a] of STATES.entries()) {
    for (const b of STATES.slice(i + 1)) {
      if (a.height === b.height && a.height > 0) assert.ok(a.pattern !== b.pattern || a.key !== b.key, `${a.name}, ${b.name}`);
    }
  }
});

test("neighbouring findings never look alike", () => {
  for (let i = 0; i < 7; i++) assert.notDeepEqual(heldLook(i, null), heldLook(i + 1, null));
});

test("patterns have ink and gaps, and repeat after eight pixels", () => {
  for (const p of ["hatch", "back", "cross", "dots", "vertical", "horizontal"] as Pattern[]) {
    let on = 0;
    for (let x = 0; x < 8; x++) {
      for (let y = 0; y < 8; y++) {
        on += ink(p, x, y) ? 1 : 0;
        assert.equal(ink(p, x, y), ink(p, x + 8, y + 8), p);
      }
    }
    assert.ok(on > 16 && on < 64, `${p}: ${on}`);
  }
});

test("the slower a span, the more it stands out, with and without colour", () => {
  const of = (name: string) => STANDINGS.find((s) => s.name === name) ?? assert.fail(name);
  const [typical, slow, slowest] = [of("span"), of("slowest tenth of its name"), of("slowest hundredth")];
  for (const theme of [LIGHT, DARK]) {
    const [a, b, c] = [contrast(theme[typical.key], theme.panel), contrast(theme[slow.key], theme.panel), contrast(theme[slowest.key], theme.panel)];
    assert.ok(a > 2 && b > 1.5 * a && c > 1.5 * b, `${theme.name}: ${a}, ${b}, ${c}`);
  }
  assert.ok(typical.height < slow.height && slow.height < slowest.height);
  const patterns = STANDINGS.map((s) => s.pattern);
  assert.equal(new Set(patterns).size, patterns.length);
});
