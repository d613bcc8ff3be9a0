//! Servers, and what drives them.

mod postgres;

use super::case::Case;

/// All of them, in the table's order.
pub const ALL: &[&Case] = &[
    &postgres::HOT_ROW,
    &postgres::HOT_WORK,
    &postgres::IDLE_TRANSACTION,
    &postgres::GROUP_COMMIT,
    &postgres::ADVISORY,
];
