//! Idioms of loops, as a real compiler writes them, and their neighbours that have none.

mod common;

use std::sync::Arc;

use common::{BASE, compile, flat_image, symbol};
use holdup_disasm::{Arch, Idiom, disassemble, loops};
use holdup_symbols::{Kernel, Symbols};
use holdup_trace::Symbolizer;

/// By hand, from the source in `programs/idioms.c`.
const EXPECTED: [(&str, Option<Idiom>); 29] = [
    ("find_word", Some(Idiom::Scans { bytes: 4 })),
    ("find_full", Some(Idiom::Scans { bytes: 8 })),
    ("sum_words", None),
    ("sum_until", None),
    ("clear_until", None),
    ("count_words", None),
    ("wait_for", None),
    ("length_of", Some(Idiom::Scans { bytes: 1 })),
    ("scatter", Some(Idiom::Divides { by_same: true })),
    ("ratios", Some(Idiom::Divides { by_same: false })),
    ("scatter_constant", None),
    ("sum_list", Some(Idiom::Chases)),
    ("follow_index", Some(Idiom::Chases)),
    ("descend", Some(Idiom::Chases)),
    ("walk_either", Some(Idiom::Chases)),
    ("walk_again", None),
    ("sum_pointers", None),
    ("sum_keys", Some(Idiom::Strides { bytes: 128, used: 8 })),
    ("sum_column", Some(Idiom::Strides { bytes: 4096, used: 8 })),
    ("sum_lines", None),
    ("sum_vectors", None),
    ("copy_bytes", Some(Idiom::CopiesBytes)),
    ("translate_bytes", None),
    ("count_ones", Some(Idiom::CountsBits)),
    ("count_zeros", Some(Idiom::CountsBits)),
    ("each_one", None),
    ("mask_down", None),
    ("count_in_place", Some(Idiom::Updates)),
    ("count_each", None),
];

/// An unrolled loop says the same of several turns.
fn same(one: &Idiom, other: &Idiom) -> bool {
    match (one, other) {
        (Idiom::Strides { bytes: a, used: b }, Idiom::Strides { bytes: c, used: d }) => a * d == b * c,
        _ => one == other,
    }
}

fn check(compiler: &str, optimised: &str, exact: bool) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("idioms");
    if !cfg!(target_arch = "x86_64") || compile(compiler, &[optimised], &["idioms.c"], &path).is_none() {
        return;
    }
    let image = flat_image(&path);
    let mut symbols = Symbols::new(Kernel::None);
    let mut wrong = Vec::new();
    for (name, expected) in EXPECTED {
        let (start, code) = symbols.code(false, &[Arc::clone(&image)], BASE + symbol(&path, name), 4096).unwrap();
        let mut found: Vec<Idiom> =
            loops(&disassemble(Arch::X86_64, &code, start)).iter().filter_map(|l| l.idiom).collect();
        found.dedup();
        let expected: Vec<Idiom> = expected.into_iter().collect();
        let alike = found.iter().all(|f| expected.iter().any(|e| same(e, f)));
        if found != expected && (exact || !alike) {
            wrong.push(format!("{name}: {found:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{compiler} {optimised}:\n{}", wrong.join("\n"));
}

#[test]
fn idioms_are_told_from_their_neighbours() {
    check("gcc", "-O2", true);
}

/// Unrolled and vectorised code may have no idiom any more, but never another one.
#[test]
fn no_idiom_is_seen_where_there_is_none() {
    for optimised in ["-O1", "-O3"] {
        check("gcc", optimised, false);
    }
    for optimised in ["-O1", "-O2", "-O3"] {
        check("clang", optimised, false);
    }
}
