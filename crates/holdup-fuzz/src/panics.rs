//! Panics of an input, those included that the reader catches: it does so around the parsers of others, where a panic of theirs is
//! the answer "no name". One in code of ours is a mistake even there.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The first panic in code of ours, while an input is tried.
    static SEEN: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Runs `body`: what it panicked with, and where, if code of ours did, or anyone did and nobody caught it.
pub fn of(body: impl FnOnce()) -> Option<String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !SEEN.with_borrow_mut(|seen| note(seen, info)) {
                usual(info);
            }
        }));
    });
    SEEN.set(Some(None));
    let result = catch_unwind(AssertUnwindSafe(body));
    let seen = SEEN.take().flatten();
    match result {
        Ok(()) => seen,
        Err(payload) => seen.or_else(|| Some(format!("it panicked: {}", said(&*payload)))),
    }
}

/// Notes a panic; whether an input is being tried, so that nothing needs to be printed.
fn note(seen: &mut Option<Option<String>>, info: &PanicHookInfo) -> bool {
    let Some(first) = seen else { return false };
    // Files of the workspace have a path from its root, those of others an absolute one.
    let place = info.location().filter(|place| place.file().starts_with("crates/"));
    if let Some(place) = place
        && first.is_none()
    {
        *first = Some(format!("it panicked at {place}: {}", said(info.payload())));
    }
    true
}

fn said(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}
