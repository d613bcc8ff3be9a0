//! Files, where there are none: in a page of a browser.

use std::fs::File;
use std::io;
use std::path::Path;

/// A file without a name.
///
/// # Errors
/// Always: there is no place for one.
pub fn temporary(_folder: &Path) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "there are no files here"))
}
