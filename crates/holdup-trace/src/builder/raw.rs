//! Stacks that the source copied instead of walking them, under names of its own.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::interpreted;
use crate::run_time::is_interpreted;
use crate::{ChainId, Image, Interpreted, Leaf, RawStack, Unwinder};

/// So many bytes of copies are kept for samples that share them, but perhaps not their callers.
const KEPT: usize = 64 << 20;

/// Copied stacks by the hash that the source names them by.
#[derive(Default)]
pub(super) struct RawStacks {
    numbers: FxHashMap<u64, u32>,
    /// By number; `None` until the bytes come.
    stacks: Vec<Option<RawStack>>,
    /// Which stack has the copy of a shared user part.
    copies: FxHashMap<u64, u32>,
    /// Frames of user parts that several stacks share.
    user_parts: FxHashMap<u64, (Vec<u64>, bool)>,
    /// Bytes of copies that are kept though they are resolved.
    kept: usize,
}

impl RawStacks {
    /// The chain of the stack `hash`, whose bytes may come before or after; 0 is none.
    pub fn chain(&mut self, hash: u64) -> ChainId {
        if hash == 0 {
            return ChainId::NONE;
        }
        let stacks = &mut self.stacks;
        let number = *self.numbers.entry(hash).or_insert_with(|| {
            stacks.push(None);
            stacks.len() as u32 - 1
        });
        // They count down from the top, so that they never meet interned chains.
        ChainId(u32::MAX - 1 - number)
    }

    /// The number of a chain that is one of these.
    #[inline]
    pub fn number(&self, chain: ChainId) -> Option<usize> {
        let number = (u32::MAX - 1).wrapping_sub(chain.0) as usize;
        (number < self.stacks.len()).then_some(number)
    }

    /// Gives the stack of `hash`. The first definition stays.
    pub fn define(&mut self, hash: u64, stack: RawStack) {
        let chain = self.chain(hash);
        let Some(number) = self.number(chain) else { return };
        if stack.user != 0 && !stack.bytes.is_empty() {
            self.copies.insert(stack.user, number as u32);
        }
        self.stacks[number].get_or_insert(stack);
    }

    /// The stack, if its bytes have come.
    pub fn get(&self, number: usize) -> Option<&RawStack> {
        self.stacks.get(number)?.as_ref()
    }

    /// Copied stacks are kilobytes each, and asked for again only by their chain, which is resolved now: those of user code excepted, which
    /// samples share.
    pub fn drop_bytes(&mut self, number: usize) {
        let Some(Some(stack)) = self.stacks.get_mut(number) else { return };
        let is_shared = stack.kernel.is_empty() && self.kept + stack.bytes.len() <= KEPT;
        if is_shared {
            self.kept += stack.bytes.len();
        } else {
            stack.bytes = Vec::new();
            stack.interpreted = Interpreted::default();
        }
    }

    /// The user frames of a thread that was at `leaf` with the copied stack of `number`, if they may be others than those of that stack and
    /// its bytes are still there.
    pub fn frames_from(
        &self,
        number: usize,
        leaf: Leaf,
        images: &[Arc<Image>],
        unwinder: &mut dyn Unwinder,
    ) -> Option<Vec<u64>> {
        let own = self.get(number).filter(|own| own.kernel.is_empty())?;
        let leaf = Leaf { bp: if leaf.bp == 0 { own.bp } else { leaf.bp }, ..leaf };
        if unwinder.shares_callers(images, own, leaf) {
            return None;
        }
        let other = || self.copies.get(&own.user).and_then(|&other| self.get(other as usize));
        let copy = if own.bytes.is_empty() { other()? } else { own };
        if copy.bytes.is_empty() {
            return None;
        }
        let there = RawStack { ip: leaf.ip, bp: leaf.bp, ..copy.clone() };
        let native = believed(images, unwinder.unwind(images, &there));
        Some(interpreted::put_in(native, &copy.interpreted, images).0)
    }

    /// The user frames of a stack whose bytes have come, the leaf first, and whether the outermost one was reached.
    pub fn user_frames(
        &mut self,
        number: usize,
        images: &[Arc<Image>],
        unwinder: Option<&mut (dyn Unwinder + 'static)>,
    ) -> (Vec<u64>, bool) {
        let Some(Some(raw)) = self.stacks.get(number) else { return (Vec::new(), false) };
        // The copy of a shared user part may belong to an event that comes later.
        let copy = match self.copies.get(&raw.user).and_then(|&other| self.get(other as usize)) {
            Some(other) if raw.bytes.is_empty() => other,
            _ => raw,
        };
        let (user, complete) = match (unwinder, self.user_parts.get(&raw.user)) {
            (_, Some((frames, complete))) => (with_first(frames, raw.ip), *complete),
            (Some(unwinder), None) if raw.ip != 0 => {
                let native = believed(images, unwinder.unwind(images, copy));
                interpreted::put_in(native, &copy.interpreted, images)
            }
            _ => (Vec::new(), raw.ip == 0),
        };
        if raw.user != 0 && !copy.bytes.is_empty() {
            let name = raw.user;
            self.user_parts.insert(name, (user.clone(), complete));
        }
        (user, complete)
    }
}

/// The frames up to the first caller that is no code: a word that was taken for an address may be anything that lay on
/// the stack, and the stack's content has no place in a trace.
fn believed(images: &[Arc<Image>], (mut frames, complete): (Vec<u64>, bool)) -> (Vec<u64>, bool) {
    let is_code = |address: u64| {
        let after = images.partition_point(|i| i.start <= address);
        after > 0 && address < images[after - 1].end
    };
    let is_known = |&address: &u64| is_interpreted(address) || is_code(address.saturating_sub(1));
    match frames.iter().skip(1).position(|address| !is_known(address)) {
        None => (frames, complete),
        Some(good) => {
            frames.truncate(good + 1);
            (frames, false)
        }
    }
}

/// The frames with `ip` as the innermost.
fn with_first(frames: &[u64], ip: u64) -> Vec<u64> {
    let mut frames = frames.to_vec();
    if let Some(first) = frames.first_mut().filter(|first| !is_interpreted(**first)) {
        *first = ip;
    }
    frames
}
