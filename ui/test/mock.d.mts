export function pack(json: unknown, sections?: Record<string, { type: "u8" | "u32" | "f32" | "f64"; values: number[] }>): Buffer;
