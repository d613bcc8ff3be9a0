//! Address spaces: which file's code lies where, in each process at each time.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::{Image, SpaceId};

/// The address spaces so far, and which of them each process has now.
pub(super) struct Spaces {
    /// What may be mapped, as the source announced it.
    announced: Vec<Arc<Image>>,
    /// The images of each space, sorted by start.
    images: Vec<Vec<Arc<Image>>>,
    of_process: FxHashMap<u32, SpaceId>,
    /// Whose each space is.
    processes: Vec<u32>,
    changes: u32,
}

impl Default for Spaces {
    fn default() -> Self {
        Spaces {
            announced: Vec::new(),
            images: vec![Vec::new()],
            of_process: FxHashMap::from_iter([(0, SpaceId::KERNEL)]),
            processes: vec![0],
            changes: 1,
        }
    }
}

impl Spaces {
    /// Announces an image that may be mapped, and says its number.
    pub fn announce(&mut self, image: Image) -> u32 {
        self.announced.push(Arc::new(image));
        self.announced.len() as u32 - 1
    }

    /// The space that `pid` has now.
    pub fn of(&mut self, pid: u32) -> SpaceId {
        match self.of_process.get(&pid) {
            Some(&space) => space,
            None => self.renew(pid, Vec::new()),
        }
    }

    /// Whether anything is known to be mapped in `pid`.
    pub fn has_images(&self, pid: u32) -> bool {
        self.of_process.get(&pid).is_some_and(|space| !self.images[space.index()].is_empty())
    }

    /// Another number whenever any process gets another space; never 0.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// The images of a space, sorted by start.
    pub fn images(&self, space: SpaceId) -> &[Arc<Image>] {
        &self.images[space.index()]
    }

    /// The images of all spaces.
    pub fn all(&self) -> &[Vec<Arc<Image>>] {
        &self.images
    }

    /// The process of each space.
    pub fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// `pid` maps an image that was announced under `number`. It replaces what it covers.
    pub fn map(&mut self, pid: u32, number: u32) -> Option<(SpaceId, Arc<Image>)> {
        let image = self.announced.get(number as usize)?.clone();
        let space = self.of(pid);
        let (start, end) = (image.start, image.end);
        let images = &mut self.images[space.index()];
        images.retain(|i| i.end <= start || i.start >= end);
        let at = images.partition_point(|i| i.start < start);
        images.insert(at, image.clone());
        Some((space, image))
    }

    /// `pid` starts with what `parent` has mapped.
    pub fn fork(&mut self, parent: u32, pid: u32) {
        let space = self.of(parent);
        let inherited = self.images[space.index()].clone();
        self.renew(pid, inherited);
    }

    /// `pid` starts another program.
    pub fn exec(&mut self, pid: u32) {
        self.renew(pid, Vec::new());
    }

    fn renew(&mut self, pid: u32, images: Vec<Arc<Image>>) -> SpaceId {
        if pid == 0 {
            return SpaceId::KERNEL;
        }
        let space = SpaceId(self.images.len() as u32);
        self.images.push(images);
        self.processes.push(pid);
        self.of_process.insert(pid, space);
        self.changes = self.changes.wrapping_add(1).max(1);
        space
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(spaces: &Spaces, space: SpaceId) -> Vec<u64> {
        spaces.images(space).iter().map(|i| i.start).collect()
    }

    #[test]
    fn a_child_inherits_and_exec_empties() {
        let mut spaces = Spaces::default();
        let [low, high, over] =
            [(0, 10), (10, 20), (5, 12)].map(|(start, end)| spaces.announce(Image { start, end, ..Image::default() }));
        assert!(spaces.map(7, 99).is_none(), "nobody announced it");
        assert!([high, low].into_iter().all(|number| spaces.map(7, number).is_some()));
        let parent = spaces.of(7);
        assert_eq!(starts(&spaces, parent), [0, 10]);
        spaces.fork(7, 8);
        let child = spaces.of(8);
        spaces.map(8, over);
        assert_eq!((starts(&spaces, parent), starts(&spaces, child)), (vec![0, 10], vec![5]));
        let before = spaces.changes();
        spaces.exec(8);
        let after = spaces.of(8);
        assert_ne!((child, before), (after, spaces.changes()));
        assert_eq!(starts(&spaces, after), [] as [u64; 0]);
        spaces.exec(0);
        assert_eq!(spaces.of(0), SpaceId::KERNEL, "the kernel has one space");
    }
}
