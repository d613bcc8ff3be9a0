//! The shareable report: traces and the page that shows them in one file, which opens from disk without a network.
//!
//! ```text
//!   ui/ ─▶ index.html, app.js, app.css ─┐
//!   holdup-wasm ─▶ dist/holdup.wasm.zst ┼─▶ one .html: no address in it, and a policy that allows none
//!   traces as `.holdup` files ──────────┘
//! ```
//!
//! Without a trace it is the page on which a person drops one; nothing leaves the machine there either.
//!
//! *Invariant:* nothing of a trace is ever part of a script or of markup: traces are base64, names are JSON in which `<` is escaped.

#![forbid(unsafe_code)]

mod choose;
mod code;
mod document;
mod fit;
mod pack;

pub use document::{Page, Shown, document};
pub use fit::Source;
pub use pack::{gunzip, gzip};

/// The browser's side of holdup: made by `cargo xtask wasm`. Packed with zstd it is a fifth smaller here than with gzip, which it is
/// in a document.
const WASM: &[u8] = include_bytes!("../dist/holdup.wasm.zst");
/// What calls it, made by wasm-bindgen.
const GLUE: &str = include_str!("../dist/holdup.js");
