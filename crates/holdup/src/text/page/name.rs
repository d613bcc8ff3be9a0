//! Names of functions that fit into a line.

/// The name without its modules and arguments: `find_free_block`, `PassManager::run`, `sort::{closure#0}`, `Register.work`.
pub fn short(name: &str) -> String {
    let plain = without_arguments(name);
    if let Some(short) = without_packages(&plain) {
        return short.to_owned();
    }
    let parts: Vec<&str> = plain.split("::").filter(|p| !p.is_empty()).collect();
    let Some((last, before)) = parts.split_last() else { return name.to_owned() };
    // A method says little without its type, a closure nothing without its function.
    let is_type = |p: &&str| p.starts_with(|c: char| c.is_uppercase());
    let from = before.iter().rposition(|p| !p.starts_with('{')).unwrap_or(0);
    match before.last() {
        Some(parent) if last.starts_with('{') => {
            let closures = before.get(from..).unwrap_or(&[]);
            if closures.is_empty() { format!("{parent}::{last}") } else { format!("{}::{last}", closures[0]) }
        }
        Some(parent) if is_type(parent) => format!("{parent}::{last}"),
        _ => (*last).to_owned(),
    }
}

/// A Go name without the path of its package: `hugolib.(*Site).render`; a Java method with its class alone: `Register.work`.
fn without_packages(plain: &str) -> Option<&str> {
    if let Some((_, last)) = plain.rsplit_once('/').filter(|_| !plain.contains(' ')) {
        return Some(last).filter(|last| last.contains('.'));
    }
    // What it returns may stand before it.
    let method = plain.rsplit(' ').next()?;
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || "_$".contains(c))
    };
    let parts: Vec<&str> = method.split('.').collect();
    let is_class = |part: &str| part.starts_with(|c: char| c.is_uppercase());
    match parts.as_slice() {
        [.., class, name] if parts.len() > 2 && parts.iter().all(|p| is_word(p)) => {
            let known = is_class(class) || parts.len() > 3;
            known.then(|| &method[method.len() - class.len() - name.len() - 1..])
        }
        _ => None,
    }
}

/// Leaves out what stands in angle brackets and round ones, but not operators.
fn without_arguments(name: &str) -> String {
    if name.contains("operator") || name.starts_with('(') {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let (mut depth, mut before, mut receiver) = (0usize, ' ', false);
    for c in name.chars() {
        match c {
            // What stands so before a method of Go is its type.
            '(' if depth == 0 && before == '.' => {
                receiver = true;
                out.push(c);
            }
            ')' if receiver => {
                receiver = false;
                out.push(c);
            }
            '<' | '(' => depth += 1,
            // The head of an arrow is no bracket.
            '>' if before == '-' => {}
            '>' | ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => out.push(c),
            _ => {}
        }
        before = c;
    }
    let out = out.trim();
    if out.is_empty() || out == "::" { name.to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn names_say_what_matters() {
        for (long, wanted) in [
            ("holdup::demo::program::find_free_block", "find_free_block"),
            ("llvm::PassManager<llvm::Module, llvm::AnalysisManager<llvm::Module, >, >::run", "PassManager::run"),
            ("<std::sys::sync::mutex::futex::Mutex>::lock_contended", "lock_contended"),
            ("core::iter::Iterator::map<F>::{closure#0}", "map::{closure#0}"),
            ("a::f::{closure#0}::{closure#1}", "f::{closure#1}"),
            ("main.(*registry).add", "main.(*registry).add"),
            ("github.com/spf13/afero.(*OsFs).Create", "afero.(*OsFs).Create"),
            ("github.com/gohugoio/hugo/hugolib.renderPages", "hugolib.renderPages"),
            ("java.lang.Object org.apache.jsp.Index.updateStats(java.lang.String)", "Index.updateStats"),
            ("org.apache.jsp.index_jsp.updateStats", "index_jsp.updateStats"),
            ("Register.work", "Register.work"),
            ("do_epoll_pwait.part.0", "do_epoll_pwait.part.0"),
            ("liblzma.so.5.4.1+0x168b0", "liblzma.so.5.4.1+0x168b0"),
            ("LazyCompile:~answer /srv/app.js:12", "LazyCompile:~answer /srv/app.js:12"),
            ("operator<<", "operator<<"),
            ("std::vector<int>::operator[]", "operator[]"),
            ("(dash)", "(dash)"),
            ("gzip+0x4290", "gzip+0x4290"),
            ("futex_wait", "futex_wait"),
            ("<T as Trait>::call::<fn(u8) -> u8>", "call"),
            ("", ""),
            ("<>", "<>"),
        ] {
            assert_eq!(short(long), wanted, "{long}");
        }
    }
}
