/** A flame graph's tree, as columns: who is whose child, how wide, how deep. */

import type { FlameAnswer } from "../host/api";
import type { Answer } from "../host/frame";

export const NONE = 0xffffffff;

export interface Tree {
  names: string[];
  name: Uint32Array;
  parent: Uint32Array;
  value: Float64Array;
  self: Float64Array;
  before: Float64Array | null;
  /** First child and next sibling; in the order in which they are drawn. */
  child: Uint32Array;
  next: Uint32Array;
  depth: Uint16Array;
  roots: number[];
  deepest: number;
  total: number;
  totalBefore: number;
  unit: string;
}

export function tree(answer: Answer<FlameAnswer>, leftHeavy: boolean): Tree {
  const { names, unit } = answer.json;
  const name = answer.u32("name");
  const parent = answer.u32("parent");
  const value = answer.f64("value");
  const self = answer.f64("self");
  const before = answer.has("before") ? answer.f64("before") : null;
  const n = name.length;
  const children: number[][] = [];
  const roots: number[] = [];
  const depth = new Uint16Array(n);
  let deepest = 0;
  for (let i = 0; i < n; i++) {
    const p = parent[i] ?? NONE;
    if (p === NONE) roots.push(i);
    else {
      (children[p] ??= []).push(i);
      depth[i] = (depth[p] ?? 0) + 1;
      deepest = Math.max(deepest, depth[i] ?? 0);
    }
  }
  const width = (i: number) => Math.max(value[i] ?? 0, before?.[i] ?? 0);
  const order = leftHeavy
    ? (a: number, b: number) => width(b) - width(a)
    : (a: number, b: number) => ((names[name[a] ?? 0] ?? "") < (names[name[b] ?? 0] ?? "") ? -1 : 1);
  const child = new Uint32Array(n).fill(NONE);
  const next = new Uint32Array(n).fill(NONE);
  roots.sort(order);
  children.forEach((list, p) => {
    list.sort(order);
    child[p] = list[0] ?? NONE;
    list.forEach((c, i) => (next[c] = list[i + 1] ?? NONE));
  });
  const sum = (of: Float64Array) => roots.reduce((all, r) => all + (of[r] ?? 0), 0);
  return {
    names,
    name,
    parent,
    value,
    self,
    before,
    child,
    next,
    depth,
    roots,
    deepest,
    total: sum(value),
    totalBefore: before ? sum(before) : 0,
    unit,
  };
}

export const nameOf = (t: Tree, i: number): string => t.names[t.name[i] ?? 0] ?? "";

export function* childrenOf(t: Tree, i: number): Generator<number> {
  for (let c = t.child[i] ?? NONE; c !== NONE; c = t.next[c] ?? NONE) yield c;
}

/** From the root down to a node. */
export function pathTo(t: Tree, i: number): number[] {
  const path: number[] = [];
  for (let at = i; at !== NONE; at = t.parent[at] ?? NONE) path.unshift(at);
  return path;
}

/** A drawn node. */
export interface Box {
  node: number;
  x: number;
  width: number;
  row: number;
}

/** Places what is at least half a pixel wide. `focus` takes the whole width, with its callers above. */
export function layout(t: Tree, focus: number | null, width: number): Box[] {
  const boxes: Box[] = [];
  // In a differential graph each side is scaled to its own total, and a node is as wide as it is now.
  const place = (node: number, x: number, w: number, row: number) => {
    boxes.push({ node, x, width: w, row });
    const whole = t.value[node] ?? 0;
    if (whole <= 0) return;
    let at = x;
    for (const c of childrenOf(t, node)) {
      const part = ((t.value[c] ?? 0) / whole) * w;
      if (part >= 0.5) place(c, at, part, row + 1);
      at += part;
    }
  };
  if (focus !== null) {
    const path = pathTo(t, focus);
    path.slice(0, -1).forEach((node, row) => boxes.push({ node, x: 0, width, row }));
    place(focus, 0, width, path.length - 1);
    return boxes;
  }
  let x = 0;
  for (const r of t.roots) {
    const w = t.total > 0 ? ((t.value[r] ?? 0) / t.total) * width : 0;
    if (w >= 0.5) place(r, x, w, 0);
    x += w;
  }
  return boxes;
}

/** Which names contain the text, and the share of all that is at or below such nodes, each part counted once. */
export function search(t: Tree, text: string): { names: Set<number>; share: number } {
  const wanted = text.trim().toLowerCase();
  const names = new Set<number>();
  if (!wanted) return { names, share: 0 };
  t.names.forEach((n, i) => n.toLowerCase().includes(wanted) && names.add(i));
  let sum = 0;
  const inside = new Uint8Array(t.name.length);
  // Parents come before children.
  for (let i = 0; i < t.name.length; i++) {
    const p = t.parent[i] ?? NONE;
    if (p !== NONE && inside[p]) inside[i] = 1;
    else if (names.has(t.name[i] ?? NONE)) {
      inside[i] = 1;
      sum += t.value[i] ?? 0;
    }
  }
  return { names, share: t.total > 0 ? sum / t.total : 0 };
}
