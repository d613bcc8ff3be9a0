/** Unpacks an answer: `u32 LE length of the JSON | JSON | sections`, each aligned to 8 bytes from the start. */

import { Cancelled } from "./host";

type Numbers = Uint8Array | Uint32Array | Float32Array | Float64Array;

interface SectionInfo {
  name: string;
  type: "u8" | "u32" | "f32" | "f64";
  length: number;
}

export interface Answer<T> {
  json: T;
  u8(name: string): Uint8Array;
  u32(name: string): Uint32Array;
  f32(name: string): Float32Array;
  f64(name: string): Float64Array;
  has(name: string): boolean;
}

const MAKE = {
  u8: (b: ArrayBuffer, at: number, n: number) => new Uint8Array(b, at, n),
  u32: (b: ArrayBuffer, at: number, n: number) => new Uint32Array(b, at, n),
  f32: (b: ArrayBuffer, at: number, n: number) => new Float32Array(b, at, n),
  f64: (b: ArrayBuffer, at: number, n: number) => new Float64Array(b, at, n),
};
const SIZE = { u8: 1, u32: 4, f32: 4, f64: 8 };

export function unpack<T>(bytes: ArrayBuffer): Answer<T> {
  if (bytes.byteLength < 4) throw new Error(`the answer has ${bytes.byteLength} bytes and no frame; reload the page`);
  const length = new DataView(bytes).getUint32(0, true);
  if (4 + length > bytes.byteLength) throw new Error("the answer is cut short; reload the page");
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Record<string, unknown>;
  if (json["cancelled"] === true) throw new Cancelled();
  if (typeof json["error"] === "string") throw new Error(json["error"]);
  const sections = new Map<string, Numbers>();
  let at = 4 + length;
  for (const info of (json["sections"] ?? []) as SectionInfo[]) {
    at = Math.ceil(at / 8) * 8;
    const end = at + info.length * SIZE[info.type];
    if (end > bytes.byteLength) throw new Error(`the answer lacks its part ${info.name}; reload the page`);
    sections.set(info.name, MAKE[info.type](bytes, at, info.length));
    at = end;
  }
  const get = (name: string) => {
    const found = sections.get(name);
    if (!found) throw new Error(`the answer has no part ${name}: page and program are of different versions`);
    return found;
  };
  return {
    json: json as T,
    u8: (n) => get(n) as Uint8Array,
    u32: (n) => get(n) as Uint32Array,
    f32: (n) => get(n) as Float32Array,
    f64: (n) => get(n) as Float64Array,
    has: (n) => sections.has(n),
  };
}
