//! Files that may be gone when their functions are named, kept open: what a test runner builds, starts and removes.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use holdup_trace::Image;

use crate::files::open_regular;
use crate::find::live_places;

/// The file behind an image of a process that lived.
#[derive(Debug, Clone)]
pub struct Held {
    path: String,
    build_id: Option<Vec<u8>>,
    file: Arc<File>,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        (&self.path, &self.build_id) == (&other.path, &other.build_id)
    }
}

impl Held {
    /// Opens it where its process has it; `None` if it cannot be had.
    pub fn open(image: &Image) -> Option<Held> {
        let (file, _) = live_places(image).iter().find_map(|path| open_regular(path, true).ok())?;
        Some(Held { path: image.path.clone(), build_id: image.build_id.clone(), file: Arc::new(file) })
    }

    /// Its path, as its process saw it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is the file of this image.
    pub fn is_of(&self, image: &Image) -> bool {
        (&self.path, &self.build_id) == (&image.path, &image.build_id)
    }

    /// Where it can be opened again.
    pub(crate) fn place(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::open_image;
    use crate::meter::{Budget, Limits, Meter};

    #[test]
    fn a_file_that_is_gone_is_still_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let path_text = path.display().to_string();
        let image = Image { path: path_text, pid: std::process::id(), start: 1, end: 2, ..Image::default() };
        let held = Held::open(&image).expect("a file");
        std::fs::remove_file(&path).unwrap();
        let meter = Meter::new(&Budget::new(Limits::of_this_machine()));
        assert!(open_image(&image, None, None, &meter).is_err());
        assert!(open_image(&image, None, Some(&held.place()), &meter).is_ok());
        assert!(held.is_of(&image) && !held.is_of(&Image { build_id: Some(vec![1]), ..image.clone() }));
    }
}
