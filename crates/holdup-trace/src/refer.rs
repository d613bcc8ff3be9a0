//! What the ids of a table's columns refer to, seen and changed in one place for all tables.

use crate::{StackId, StringId};

/// Sees each id in a table, and may change it.
#[allow(unused_variables)]
pub trait Refer {
    /// A string.
    fn string(&mut self, id: &mut StringId) {}
    /// A stack.
    fn stack(&mut self, id: &mut StackId) {}
}
