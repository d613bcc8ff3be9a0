//! Files of a script: those of its folder, unless more was asked for.
//!
//! The kernel itself resolves the path below the folder (`openat2`), so that `..`, absolute paths, links that lead out and the
//! links of `/proc` are refused in one step, and nothing can be exchanged between a look and an opening.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use super::limits::Size;

/// Never waits for the other end of a pipe, and makes no terminal ours.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Which files a script may read.
#[derive(Clone, Debug)]
pub(super) struct Files {
    folder: PathBuf,
    any: bool,
}

/// Why a file was not read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// There is none.
    Missing(String),
    /// Another reason.
    Because(String),
}

impl Refusal {
    /// The sentence.
    pub(super) fn sentence(self) -> String {
        match self {
            Refusal::Missing(why) | Refusal::Because(why) => why,
        }
    }
}

impl Files {
    /// The files for the script at `path`; with `any`, all files.
    pub(super) fn of(path: &Path, any: bool) -> Files {
        Files { folder: path.parent().unwrap_or(Path::new("")).to_owned(), any }
    }

    /// The script's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether all files may be read.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// The text of a file of at most `most` bytes.
    pub(super) fn text(&self, file: &Path, most: usize) -> Result<String, Refusal> {
        let (opened, path) = self.open(file)?;
        text_of(opened, &path, most)
    }

    /// A plain file, to be read bit by bit.
    pub(super) fn plain(&self, file: &Path) -> Result<File, Refusal> {
        let (opened, path) = self.open(file)?;
        length_of(&opened, &path)?;
        Ok(opened)
    }

    /// A file, and where it lies. A relative path is one in the script's folder; one that is found where the program was started
    /// counts too, as the shell completes those.
    fn open(&self, file: &Path) -> Result<(File, PathBuf), Refusal> {
        let beside = self.folder.join(file);
        if self.any {
            let path = if beside.exists() { beside } else { file.to_owned() };
            return open_any(&path).map_err(|e| refusal(&path, &e)).map(|opened| (opened, path));
        }
        let opened = match self.below(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match file.strip_prefix(&self.folder) {
                Ok(rest) if rest != file => self.below(rest),
                _ => Err(error),
            },
            opened => opened,
        };
        let opened = opened.map_err(|error| {
            if leads_out(&error) {
                Refusal::Because(format!(
                    "{}: is not in the script's folder {}, and a script reads no other files: move it there (links don't count), \
                     or give --allow-fs",
                    file.display(),
                    std::path::absolute(self.shown_folder()).unwrap_or_else(|_| self.folder.clone()).display()
                ))
            } else {
                refusal(&beside, &error)
            }
        })?;
        Ok((opened, beside))
    }

    fn below(&self, file: &Path) -> io::Result<File> {
        // A path that the folder itself begins is one in it: scripts of one machine name their files so.
        let whole = std::path::absolute(self.shown_folder())?;
        let file = if file.is_absolute() { file.strip_prefix(&whole).unwrap_or(file) } else { file };
        let folder = File::open(self.shown_folder())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            return match openat2(&folder, file, FLAGS, Mode::empty(), resolve) {
                // A folder was renamed meanwhile, and the kernel can't tell whether `..` led out.
                Err(Errno::AGAIN | Errno::INTR) => continue,
                // Kernels before 5.6, and some containers, have no such call.
                Err(Errno::NOSYS | Errno::PERM) => below_by_steps(folder, file),
                opened => Ok(File::from(opened?)),
            };
        }
    }

    fn shown_folder(&self) -> &Path {
        if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder }
    }
}

/// The same without the kernel's help: one part of the path after the other, and no links at all.
fn below_by_steps(folder: File, file: &Path) -> io::Result<File> {
    let mut at = folder;
    let parts: Vec<Component> = file.components().filter(|part| *part != Component::CurDir).collect();
    for (i, part) in parts.iter().enumerate() {
        let Component::Normal(name) = part else { return Err(Errno::XDEV.into()) };
        let kind = if i + 1 < parts.len() { OFlags::DIRECTORY } else { OFlags::empty() };
        at = match openat(&at, *name, FLAGS | OFlags::NOFOLLOW | kind, Mode::empty()) {
            Err(Errno::LOOP) => return Err(Errno::XDEV.into()),
            opened => File::from(opened?),
        };
    }
    Ok(at)
}

/// Any file, but never a wait for one.
pub(super) fn open_any(path: &Path) -> io::Result<File> {
    Ok(File::from(openat(CWD, path, FLAGS, Mode::empty())?))
}

fn leads_out(error: &io::Error) -> bool {
    [Errno::XDEV, Errno::LOOP].iter().any(|out| error.raw_os_error() == Some(out.raw_os_error()))
}

pub(super) fn refusal(path: &Path, error: &io::Error) -> Refusal {
    let sentence = format!("{}: {error}", path.display());
    if error.kind() == io::ErrorKind::NotFound { Refusal::Missing(sentence) } else { Refusal::Because(sentence) }
}

/// The length of a plain file.
fn length_of(file: &File, path: &Path) -> Result<usize, Refusal> {
    let about = file.metadata().map_err(|e| refusal(path, &e))?;
    if about.is_file() {
        return Ok(usize::try_from(about.len()).unwrap_or(usize::MAX));
    }
    Err(Refusal::Because(format!("{}: it is not a plain file, and a script reads no others", path.display())))
}

/// The text of a plain file; devices and pipes have no end, or no beginning.
pub(super) fn text_of(mut file: File, path: &Path, most: usize) -> Result<String, Refusal> {
    let length = length_of(&file, path)?;
    let because = |what: String| Refusal::Because(format!("{}: {what}", path.display()));
    let too_long =
        |is: usize| because(format!("it has {}, and {} is the most that is read here", Size(is), Size(most)));
    if length > most {
        return Err(too_long(length));
    }
    let mut bytes = Vec::with_capacity(length);
    let cap = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    (&mut file).take(cap).read_to_end(&mut bytes).map_err(|e| refusal(path, &e))?;
    if bytes.len() > most {
        return Err(too_long(bytes.len()));
    }
    String::from_utf8(bytes)
        .map_err(|e| because(format!("byte {} is not UTF-8: it should be a text", e.utf8_error().valid_up_to())))
}

#[cfg(test)]
#[path = "beneath_tests.rs"]
mod tests;
