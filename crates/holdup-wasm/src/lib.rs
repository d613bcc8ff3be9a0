//! The page's second host: what `holdup-server` answers on a machine is answered here within the browser, by the same
//! `holdup-view`. A report and the page on which traces are dropped call this in a worker.
//!
//! `cargo xtask wasm` compiles it for `wasm32-unknown-unknown`, which has no threads and no files, and puts what comes out into
//! `crates/holdup-report/dist`.
//!
//! *Invariant:* nothing here panics for any bytes, as far as the crates below keep that promise: a panic ends the worker. The page
//! starts a new one then, and says so.

use std::path::Path;
use std::sync::Arc;

use holdup_trace::{Destination, Trace, TraceBuilder, file};
use holdup_view::{Cancel, Gallery, Item, Machine, Model};
use wasm_bindgen::prelude::wasm_bindgen;

/// The traces of one page.
#[wasm_bindgen]
#[derive(Default)]
pub struct Page {
    gallery: Gallery,
}

#[wasm_bindgen]
impl Page {
    /// Without a trace.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the bytes of a file called `name`: `.holdup`, or what can be imported. Returns its number.
    ///
    /// # Errors
    /// A sentence: it is no trace, or damaged.
    pub fn open(&self, bytes: Vec<u8>, name: &str) -> Result<u32, String> {
        let trace = read(bytes, name).map_err(|e| e.to_string())?;
        let model = Model::open(trace, name, Box::new(Machine)).map_err(|e| e.to_string())?;
        let id = self.gallery.add(name);
        self.gallery.set(id, Item::Trace(Arc::new(model)));
        Ok(id as u32)
    }

    /// What there is: the page's list of traces, framed.
    pub fn list(&self) -> Vec<u8> {
        self.gallery.list().0
    }

    /// Answers a question of the page, given as JSON: framed bytes, an error among them.
    pub fn ask(&self, question: &[u8]) -> Vec<u8> {
        self.gallery.ask_json(question, &Cancel::default())
    }
}

fn read(bytes: Vec<u8>, name: &str) -> holdup_trace::Result<Trace> {
    let path = Path::new(name);
    if file::is_holdup(&bytes) {
        return file::read_memory(bytes, path);
    }
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    holdup_import::Input::from_bytes(path, bytes)?.import(&mut builder)?;
    // There is no file here that would name an address.
    builder.finish(None)
}
