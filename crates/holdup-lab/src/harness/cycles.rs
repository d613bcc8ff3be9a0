//! How many cycles the core makes in a nanosecond.

use super::clock;

/// Operations of one kind in a row, each of which needs the one before.
type Chain = fn(u64, u64) -> u64;

/// A row of operations of each kind, and in how many cycles a processor is done with one. No processor leaves these out:
/// of additions of a constant, which some fold into one, a core seems to do more than it has cycles.
const CHAINS: [(Chain, f64); 3] = [(row_of_xors, 1.0), (row_of_rotations, 1.0), (row_of_products, 3.0)];
/// Operations in a row, so many that what is around them counts for nothing.
const ROW: u32 = 1024;
/// How far two kinds may lie apart and still agree.
const AGREE: f64 = 0.04;
/// What no core runs at, in GHz: neither more nor less.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.1..=9.0;

/// The rate of the core in GHz, by chains of operations that each need the one before; `None` where they do not agree: on
/// a processor that takes other numbers of cycles, or where something else had the CPU all the time.
pub fn core_ghz() -> Option<f64> {
    const ROUNDS: usize = 60;
    const BATCH: u32 = 20;
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return None;
    }
    // In turns, so that all see the same core at the same rate; of each the fastest: what interrupts only ever takes time.
    let mut fastest = [0.0_f64; CHAINS.len()];
    for _ in 0..ROUNDS {
        for ((chain, cycles), fastest) in CHAINS.iter().zip(&mut fastest) {
            let start = clock::now_ns();
            let mut value = std::hint::black_box(0x9e37_79b9_7f4a_7c15);
            for _ in 0..BATCH {
                value = chain(value, 3);
            }
            std::hint::black_box(value);
            let rate = f64::from(BATCH * ROW) * cycles / (clock::now_ns() - start).max(1) as f64;
            *fastest = fastest.max(rate);
        }
    }
    agreed(fastest)
}

/// The rate that two kinds agree on; the greater of two such rates, as time is lost and never won.
fn agreed(rates: [f64; CHAINS.len()]) -> Option<f64> {
    let agrees = |a: f64| rates.iter().filter(|b| (a - **b).abs() <= AGREE * a).count() > 1;
    let all = rates.into_iter().filter(|rate| POSSIBLE.contains(rate) && agrees(*rate));
    all.reduce(f64::max)
}

macro_rules! row {
    ($(#[$doc:meta])* $name:ident, $x86:literal, $arm:literal, $plain:expr) => {
        $(#[$doc])*
        #[inline]
        fn $name(mut value: u64, other: u64) -> u64 {
            // SAFETY: the instructions change the one register that they are given.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                core::arch::asm!(".rept 1024", $x86, ".endr", inout(reg) value, in(reg) other, options(pure, nomem, nostack));
            }
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                core::arch::asm!(".rept 1024", $arm, ".endr", inout(reg) value, in(reg) other, options(pure, nomem, nostack));
            }
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            for _ in 0..ROW {
                value = $plain(value, other);
            }
            value
        }
    };
}

row!(row_of_xors, "xor {0}, {1}", "eor {0}, {0}, {1}", |a: u64, b: u64| a ^ b);
row!(row_of_rotations, "ror {0}, 7 /* {1} */", "ror {0}, {0}, #7 /* {1} */", |a: u64, _| a.rotate_right(7));
row!(row_of_products, "imul {0}, {1}", "mul {0}, {0}, {1}", |a: u64, b: u64| a.wrapping_mul(b));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_they_say() {
        let x = 0x0123_4567_89ab_cdef;
        assert_eq!(row_of_xors(x, 5), x);
        assert_eq!(row_of_rotations(x, 5), x.rotate_right(ROW * 7));
        assert_eq!(row_of_products(x, 3), x.wrapping_mul(3u64.wrapping_pow(ROW)));
    }

    #[test]
    fn a_rate_is_told_only_if_two_kinds_agree() {
        assert_eq!(agreed([3.2, 3.19, 3.2]), Some(3.2));
        // One that is folded, and one that takes longer than on other processors.
        assert_eq!(agreed([19.13, 3.2, 3.1]), Some(3.2));
        assert_eq!(agreed([3.2, 3.15, 1.9]), Some(3.2));
        assert_eq!(agreed([19.13, 3.2, 1.9]), None);
        // Two that agree on what is not possible.
        assert_eq!(agreed([19.13, 19.13, 3.2]), None);
        assert_eq!(agreed([0.0, 0.0, f64::NAN]), None);
    }

    #[test]
    fn this_core_runs_at_a_possible_rate() {
        let rate = core_ghz();
        println!("the core at {rate:?} GHz");
        assert!(rate.is_none_or(|ghz| POSSIBLE.contains(&ghz)), "{rate:?}");
    }
}
