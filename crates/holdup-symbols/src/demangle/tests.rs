use super::*;
use crate::limits_tests::elf;

#[test]
fn names_lose_arguments_hashes_and_suffixes() {
    let cases = [
        ("main", "main"),
        ("pthread_mutex_lock@@GLIBC_2.2.5", "pthread_mutex_lock"),
        ("parse.part.0.cold", "parse"),
        ("step.constprop.0.isra.3", "step"),
        ("_ZN2ns5Class6methodEiPKc", "ns::Class::method"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back"),
        ("_ZN3std4sync5mutex14Mutex$LT$T$GT$4lock17h0123456789abcdefE", "std::sync::mutex::Mutex<T>::lock"),
        (
            "_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE.llvm.1234567890",
            "core::ops::function::FnOnce::call_once",
        ),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        (".cold", ".cold"),
        ("_Zgarbage", "_Zgarbage"),
    ];
    for (raw, wanted) in cases {
        assert_eq!(demangle(raw), Demangled { text: wanted.into(), whole: true }, "{raw}");
    }
}

#[test]
fn costly_names_stay_mangled_or_are_cut() {
    for raw in elf::costly_names() {
        let name = demangle(&raw);
        assert!(!name.whole, "{raw}");
        assert!(name.text == raw || name.text.len() <= NAME_LIMIT && name.text.ends_with(CUT), "{raw}: {}", name.text);
    }
}

#[test]
fn long_names_are_cut_between_characters() {
    for (raw, whole) in [("ä".repeat(2048), true), ("ä".repeat(2049), false), (format!("a{}", "ä".repeat(9000)), false)]
    {
        let name = demangle(&raw);
        assert_eq!(name.whole, whole);
        assert!(name.text.len() <= NAME_LIMIT && name.text.ends_with(if whole { 'ä' } else { CUT }));
    }
    // What a Rust name stands for can be cut inside of a character, too.
    let rust = demangle(&format!("_RNvC1au{}_{}", 3000, "9".repeat(3000)));
    assert!(rust.text.len() <= NAME_LIMIT);
    let cpp = demangle(&format!("_Z6000{}v", "x".repeat(6000)));
    assert!(!cpp.whole && cpp.text.len() <= NAME_LIMIT && cpp.text.ends_with("x…"), "{}", cpp.text);
}

/// Real names go on being demangled: deep, and with many arguments.
#[test]
fn long_real_names_are_whole() {
    let nested = format!("_Z1f{}i{}v", "I1A".repeat(21), "E".repeat(21));
    let name = demangle(&nested);
    assert!(name.whole && name.text.starts_with("f<A<A<"), "{}", name.text);
    let wide = format!("_Z1fI{}Evv", "SaIiE".repeat(150));
    let name = demangle(&wide);
    assert!(name.whole && name.text.matches("std::allocator<int>").count() == 150, "{}", name.text);
}
