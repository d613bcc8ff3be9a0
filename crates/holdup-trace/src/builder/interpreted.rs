//! What an interpreter ran takes the place of its own evaluation function in a stack.
//!
//! ```text
//!   native, innermost first:   futex  lock_acquire  EVAL  vectorcall  EVAL  main
//!   interpreted:                                    f g|              h|          | ends what one EVAL ran
//!   together:                  futex  lock_acquire  f g   vectorcall  h     main
//! ```
//!
//! Both tell of the same calls, but either may lack an end: a copied stack may be cut, so that outer calls are missing; an
//! interpreter that has just begun a call has not noted it yet, so that the innermost is. They are laid beside each other from
//! the end that both have.

use std::sync::Arc;

use crate::run_time::interpreted_address;
use crate::{Image, Interpreted, InterpretedFrame};

/// The native frames, the leaf first, with interpreted ones in place of the evaluation, and whether the outermost is there.
pub(super) fn put_in(
    (native, complete): (Vec<u64>, bool),
    interpreted: &Interpreted,
    images: &[Arc<Image>],
) -> (Vec<u64>, bool) {
    if interpreted.frames.is_empty() {
        return (native, complete);
    }
    let evaluations = evaluations(&native, interpreted.evaluation);
    let within = |at: usize| native.get(at).is_some_and(|&address| is_inside(interpreted.evaluation, at, address));
    let runs: Vec<&[InterpretedFrame]> = interpreted.frames.split_inclusive(|frame| frame.entry).collect();
    // Evaluations without a run are the innermost ones, if the outermost ones are all there.
    let from_outermost = interpreted.complete && (complete || evaluations.len() > runs.len());
    let unnoted = if from_outermost { evaluations.len().saturating_sub(runs.len()) } else { 0 };
    // Runs without an evaluation: with the innermost one, or else behind the end of what was copied.
    let mut take = if from_outermost { runs.len().saturating_sub(evaluations.len()) + 1 } else { 1 };
    let mut runs = runs.into_iter();
    let mut frames = Vec::with_capacity(native.len() + interpreted.frames.len());
    let mut next = evaluations.into_iter().skip(unnoted).peekable();
    let mut at = 0;
    while let Some(&address) = native.get(at) {
        let before = frames.len();
        if next.next_if_eq(&at).is_some() {
            let taken = runs.by_ref().take(std::mem::replace(&mut take, 1));
            frames.extend(taken.flatten().filter_map(address_of));
        }
        at += 1;
        if frames.len() == before {
            frames.push(address);
            continue;
        }
        // The function that evaluates may be two, of which one calls the other.
        while within(at) {
            at += 1;
        }
        if native.get(at).is_some_and(|&caller| is_trampoline(images, caller)) {
            at += 1;
        }
    }
    frames.extend(runs.flatten().filter_map(address_of));
    (frames, complete || interpreted.complete)
}

/// At which frames each evaluation is, the innermost first. Frames of it that call each other are one.
fn evaluations(native: &[u64], evaluation: (u64, u64)) -> Vec<usize> {
    let inside = |at: usize| is_inside(evaluation, at, native[at]);
    (0..native.len()).filter(|&at| inside(at) && !(at > 0 && inside(at - 1))).collect()
}

fn is_inside((start, end): (u64, u64), depth: usize, address: u64) -> bool {
    // A caller's address is that behind its call.
    let address = if depth == 0 { address } else { address.saturating_sub(1) };
    (start..end).contains(&address)
}

fn address_of(frame: &InterpretedFrame) -> Option<u64> {
    (frame.function != 0).then(|| interpreted_address(frame.function))
}

/// Whether the evaluation's caller is code that was made at run time: Python's `-X perf` puts a piece with the function's name
/// there, which says the same again.
fn is_trampoline(images: &[Arc<Image>], address: u64) -> bool {
    let after = images.partition_point(|image| image.start < address);
    after > 0 && address <= images[after - 1].end && images[after - 1].path.starts_with("//anon")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVAL: u64 = 0x1000;
    const TRAMPOLINE: u64 = 0x9000;

    /// Frames by their functions; a negative one is where an evaluation began.
    fn ran(functions: &[i32], complete: bool) -> Interpreted {
        let frame = |&f: &i32| InterpretedFrame { function: f.unsigned_abs(), entry: f < 0 };
        Interpreted {
            evaluation: (EVAL, EVAL + 0x100),
            frames: functions.iter().map(frame).collect(),
            complete,
            ..Interpreted::default()
        }
    }

    fn together(native: &[u64], complete: bool, ran: &Interpreted) -> (Vec<u64>, bool) {
        let anonymous =
            Image { start: TRAMPOLINE, end: TRAMPOLINE + 0x1000, path: "//anon".into(), ..Image::default() };
        put_in((native.to_vec(), complete), ran, &[Arc::new(anonymous)])
    }

    fn f(function: u32) -> u64 {
        interpreted_address(function)
    }

    #[test]
    fn each_evaluation_becomes_what_it_ran() {
        let native = [0x10, EVAL + 8, 0x20, EVAL + 0x100, 0x30];
        let (frames, complete) = together(&native, true, &ran(&[1, -2, -3], true));
        assert_eq!((frames, complete), (vec![0x10, f(1), f(2), 0x20, f(3), 0x30], true));
        assert_eq!(together(&native, true, &ran(&[], true)).0, native);
    }

    #[test]
    fn a_call_that_is_not_noted_yet_stays_native() {
        let native = [EVAL + 8, 0x20, EVAL + 8, 0x30];
        assert_eq!(together(&native, true, &ran(&[-1], true)).0, [EVAL + 8, 0x20, f(1), 0x30]);
        assert_eq!(together(&native, false, &ran(&[-1], true)), (vec![EVAL + 8, 0x20, f(1), 0x30], true));
    }

    #[test]
    fn what_lies_beyond_the_copy_is_known_from_the_interpreter() {
        let native = [0x10, EVAL + 8, 0x20];
        assert_eq!(together(&native, false, &ran(&[-1, 2, -3], true)), (vec![0x10, f(1), 0x20, f(2), f(3)], true));
        // Neither end is there.
        assert_eq!(together(&native, false, &ran(&[-1, -2], false)), (vec![0x10, f(1), 0x20, f(2)], false));
    }

    #[test]
    fn no_frame_of_the_interpreter_is_lost() {
        // An evaluation was not recognised.
        let native = [0x10, EVAL + 8, 0x30];
        assert_eq!(together(&native, true, &ran(&[-1, -2], true)).0, [0x10, f(1), f(2), 0x30]);
        assert_eq!(together(&[0x10], true, &ran(&[-1], true)).0, [0x10, f(1)]);
    }

    #[test]
    fn what_could_not_be_read_stays_native() {
        let native = [EVAL + 8, 0x20, EVAL + 8, 0x30];
        let mut some = ran(&[-1, 2, -3], true);
        some.frames[0].function = 0;
        assert_eq!(together(&native, true, &some).0, [EVAL + 8, 0x20, f(2), f(3), 0x30]);
    }

    #[test]
    fn functions_that_evaluate_together_are_one_evaluation() {
        let native = [0x10, EVAL + 8, EVAL + 0x90, 0x20, EVAL + 8, EVAL + 0x90, 0x30];
        assert_eq!(together(&native, true, &ran(&[1, -2, -3], true)).0, [0x10, f(1), f(2), 0x20, f(3), 0x30]);
    }

    #[test]
    fn a_function_is_not_told_twice() {
        let native = [EVAL + 8, TRAMPOLINE + 0x20, 0x20, EVAL + 8, TRAMPOLINE + 0x20, 0x30];
        assert_eq!(together(&native, true, &ran(&[-1, -2], true)).0, [f(1), 0x20, f(2), 0x30]);
    }
}
