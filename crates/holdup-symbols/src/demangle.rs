//! Names as their authors wrote them: without argument lists, hashes and the compiler's suffixes.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Longest name that is demangled: what is longer is templates gone wild, and takes seconds.
const LENGTH_LIMIT: usize = 16 << 10;

/// What GCC and LLVM append to clones and parts of a function.
const SUFFIXES: [&str; 8] = [".cold", ".part", ".isra", ".constprop", ".lto_priv", ".llvm", ".clone", ".warm"];

/// The readable form of a symbol; the name itself where it is not mangled.
pub(crate) fn demangle(raw: &str) -> String {
    let name = without_suffixes(raw.split_once('@').map_or(raw, |(name, _version)| name));
    if name.len() > LENGTH_LIMIT {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") && !name.starts_with("___Z") {
        return name.to_owned();
    }
    demangle_cpp(name).unwrap_or_else(|| name.to_owned())
}

fn demangle_cpp(name: &str) -> Option<String> {
    let parse = ParseOptions::default().recursion_limit(160);
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(160);
    crate::guarded(|| Symbol::new_with_options(name, &parse).ok()?.demangle_with_options(&options).ok()).flatten()
}

fn without_suffixes(mut name: &str) -> &str {
    while let Some(end) = suffix(name) {
        name = &name[..end];
    }
    name
}

/// Where a suffix like `.part.0` or `.cold` begins.
fn suffix(name: &str) -> Option<usize> {
    let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = if without_number.len() < name.len() { without_number.strip_suffix('.').unwrap_or(name) } else { name };
    let end = SUFFIXES.iter().find_map(|s| stem.strip_suffix(s))?.len();
    (end > 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::demangle;

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
            assert_eq!(demangle(raw), wanted, "{raw}");
        }
    }
}
