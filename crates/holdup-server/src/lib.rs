//! The page of holdup over HTTP, for one person on this machine; and metrics, for who collects them ([`scrape`]).
//!
//! It listens on the loopback device alone. Every address begins with a random token, so that neither other users of the
//! machine nor pages of other sites get in; `Host` and `Origin` are compared besides, against names that are made to lead here.
//! What the page may load is fixed by a policy of its own origin.
//!
//! ```text
//!   connection ─ at most 64 at once ─▶ guard: token, Host, Origin, method ─▶ page
//!                                                                       └─▶ question ─ a few at once, others wait or are refused
//! ```

#![forbid(unsafe_code)]

mod asking;
mod guard;
mod page;
pub mod scrape;
mod serve;
mod token;

pub use page::{Files, PAGE};
pub use serve::{Server, bind};
