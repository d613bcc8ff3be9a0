//! Files of programs in folders for what does not last: kept open, as their names are read when the recording has ended.

use holdup_runtime::Held;
use holdup_spool::Side;

use crate::caps::Raised;

/// Files that are kept open at the most.
const MOST: usize = 64;
/// Where programs lie that are built, run and removed.
const PASSING: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/run/"];

/// Keeps those open that new mappings are of.
pub(crate) fn see(held: &mut Vec<Held>, side: &[Side]) {
    let mut raised = None;
    for item in side {
        let Side::Map { image, .. } = item else { continue };
        let passes = PASSING.iter().any(|folder| image.path.starts_with(folder));
        if passes && held.len() < MOST && !held.iter().any(|h| h.is_of(image)) {
            raised.get_or_insert_with(Raised::all);
            held.extend(Held::open(image));
        }
    }
}
