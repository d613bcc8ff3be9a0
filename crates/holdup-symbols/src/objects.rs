//! The files of all address spaces, each opened once.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdup_trace::{Image, Note, NoteKind};
use rustc_hash::FxHashMap;

use crate::debuginfod::Debuginfod;
use crate::find::process_root;
use crate::held::Held;
use crate::meter::{Budget, Limits};
use crate::object::Object;
use crate::vdso;

/// Problems beyond this are not kept: a trace of a whole machine can have thousands of unreadable files.
const PROBLEM_LIMIT: usize = 200;

/// Why a file of a trace from elsewhere is left alone.
const UNPROVEN: &str = "the trace is of another machine or kernel, and without a build id nothing tells whether this machine's file \
                        is the same";

/// The opened files.
pub(crate) struct Objects {
    budget: Arc<Budget>,
    objects: Vec<Object>,
    /// (path, build id, root directory) → index into `objects`.
    files: FxHashMap<FileKey, Option<usize>>,
    /// The same by the address of the `Image`, which is kept so that the address stays taken.
    images: FxHashMap<usize, (Arc<Image>, Option<usize>)>,
    roots: FxHashMap<u32, Option<PathBuf>>,
    /// Whether this kernel's vdso is that of the trace.
    own_vdso: bool,
    /// Whether the trace is from elsewhere: a file of this machine is the same only if its build id proves it.
    foreign: bool,
    /// Servers to ask for what this machine lacks.
    remote: Option<Arc<Debuginfod>>,
    /// Files that are kept open.
    held: Vec<Held>,
    problems: Vec<Note>,
    /// Problems that are not kept.
    more_problems: usize,
}

#[derive(PartialEq, Eq, Hash)]
struct FileKey {
    path: String,
    build_id: Option<Vec<u8>>,
    root: Option<PathBuf>,
    /// Deleted files of one name differ.
    place: Option<(u32, u64)>,
    /// Device, inode, time of change: a program can be built anew between two processes.
    version: Option<(u64, u64, i64)>,
}

impl Objects {
    /// `own_vdso`: whether the trace is from the kernel that runs.
    pub fn new(own_vdso: bool) -> Objects {
        Objects::with_limits(own_vdso, Limits::of_this_machine())
    }

    pub fn with_limits(own_vdso: bool, limits: Limits) -> Objects {
        Objects {
            budget: Budget::new(limits),
            objects: Vec::new(),
            files: FxHashMap::default(),
            images: FxHashMap::default(),
            roots: FxHashMap::default(),
            own_vdso,
            foreign: false,
            remote: None,
            held: Vec::new(),
            problems: Vec::new(),
            more_problems: 0,
        }
    }

    /// What all files may cost.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// From now on files of this machine are used only if their build ids prove that they are those of the trace.
    pub fn set_foreign(&mut self) {
        self.foreign = true;
    }

    /// From now on these servers are asked for what this machine lacks.
    pub fn set_remote(&mut self, remote: Option<Debuginfod>) {
        self.remote = remote.map(Arc::new);
    }

    /// From now on these stand for files that are gone.
    pub fn set_held(&mut self, held: Vec<Held>) {
        self.held = held;
    }

    /// The servers.
    pub fn remote(&self) -> Option<&Arc<Debuginfod>> {
        self.remote.as_ref()
    }

    /// Whether the trace is from elsewhere.
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// The file behind an image; opens it at the first time.
    pub fn index(&mut self, image: &Arc<Image>) -> Option<usize> {
        let id = Arc::as_ptr(image) as usize;
        if let Some((_, object)) = self.images.get(&id) {
            return *object;
        }
        let foreign = self.foreign;
        let root = || if foreign { None } else { process_root(image.pid) };
        let root = self.roots.entry(image.pid).or_insert_with(root).clone();
        let place = image.path.ends_with(" (deleted)").then_some((image.pid, image.start));
        let version = version(&image.path, root.as_deref());
        let key = FileKey { path: image.path.clone(), build_id: image.build_id.clone(), root, place, version };
        let object = match self.files.get(&key) {
            Some(&known) => known,
            None => {
                let object = self.open(image, key.root.as_deref());
                self.files.insert(key, object);
                object
            }
        };
        self.images.insert(id, (image.clone(), object));
        object
    }

    pub fn get(&self, index: usize) -> &Object {
        &self.objects[index]
    }

    /// What could not be read and what was left out, in sentences.
    pub fn problems(&self) -> Vec<Note> {
        let more =
            (self.more_problems > 0).then(|| format!("{} more files could not be read", self.more_problems).into());
        self.problems.iter().cloned().chain(more).chain(self.budget.notes().into_iter().map(Note::from)).collect()
    }

    /// Keeps a sentence, once.
    pub fn note(&mut self, note: impl Into<Note>) {
        let note = note.into();
        if self.problems.contains(&note) {
            return;
        }
        if self.problems.len() < PROBLEM_LIMIT {
            self.problems.push(note);
        } else {
            self.more_problems += 1;
        }
    }

    fn open(&mut self, image: &Image, root: Option<&Path>) -> Option<usize> {
        if image.path == vdso::NAME {
            let bytes = if self.own_vdso { vdso::of_this_kernel(image) } else { None };
            let object = Object::from_bytes(bytes?, vdso::NAME, &self.budget).ok()?;
            self.objects.push(object);
            return Some(self.objects.len() - 1);
        }
        if !is_file(&image.path) {
            return None;
        }
        if self.foreign && image.build_id.is_none() {
            self.note(Note::new(NoteKind::NoNames, format!("no names for {}: {UNPROVEN}", image.path)));
            return None;
        }
        let held = self.held.iter().find(|held| held.is_of(image)).map(Held::place);
        match Object::open(image, root, held.as_deref(), self.remote.as_ref(), &self.budget) {
            Ok(None) => None,
            Ok(Some(object)) => {
                self.objects.push(object);
                Some(self.objects.len() - 1)
            }
            Err(e) => {
                self.note(Note::new(NoteKind::NoNames, format!("no names for {}: {e}", image.path)));
                None
            }
        }
    }
}

fn version(path: &str, root: Option<&Path>) -> Option<(u64, u64, i64)> {
    let path = root.unwrap_or(Path::new("/")).join(path.strip_prefix('/')?);
    std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino(), m.mtime_nsec() ^ m.mtime()))
}

/// The image that holds `address`.
pub(crate) fn image_at(images: &[Arc<Image>], address: u64) -> Option<&Arc<Image>> {
    let after = images.partition_point(|i| i.start <= address);
    images[..after].last().filter(|i| address < i.end)
}

/// Whether the mapping is of a file, rather than of memory that code was written to.
pub(crate) fn is_file(path: &str) -> bool {
    path.starts_with('/') && !["//anon", "/memfd:", "/dev/", "/SYSV"].iter().any(|p| path.starts_with(p))
}
