//! Names of functions that fit into a line.

/// The name without its modules and arguments: `find_free_block`, `PassManager::run`, `sort::{closure#0}`, `Register.work`.
pub fn short(name: &str) -> String {
    if let Some(short) = of_erlang(name) {
        return short;
    }
    let plain = without_arguments(name);
    if let Some(short) = of_hidden_class(&plain) {
        return short;
    }
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

/// A function of Erlang as its authors write it: `gen_server:loop/7`, and `Shop.order/2` for Elixir's `$'Elixir.Shop':order/2`.
fn of_erlang(name: &str) -> Option<String> {
    let (module, function) = name.strip_prefix('$')?.split_once(':')?;
    let (module, function) =
        (module.trim_matches('\''), function.trim_end_matches("-CodeInfoPrologue").replace('\'', ""));
    Some(match module.strip_prefix("Elixir.") {
        Some(module) => format!("{module}.{function}"),
        None => format!("{module}:{function}"),
    })
}

/// What Java makes of a lambda has its place in memory as a part of its name: `Log$$Lambda.run`.
fn of_hidden_class(plain: &str) -> Option<String> {
    let (path, rest) = plain.rsplit_once("/0x")?;
    let (_, method) = rest.split_once('.')?;
    let class = path.rsplit(['.', ' ']).next()?;
    let class = class.split_once("$$Lambda").map_or(class, |(of, _)| &class[..of.len() + "$$Lambda".len()]);
    Some(format!("{class}.{method}"))
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

/// Leaves out what stands in angle brackets and round ones, but not operators, nor what Python calls so: `<lambda>`.
fn without_arguments(name: &str) -> String {
    if name.contains("operator") || name.starts_with('(') {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let (mut depth, mut before, mut receiver, mut named) = (0usize, ' ', false, false);
    for (at, c) in name.char_indices() {
        match c {
            '<' if depth == 0 && is_of_python(&name[..at], &name[at + 1..]) => {
                out.push(c);
                named = true;
            }
            '>' if named => {
                out.push(c);
                named = false;
            }
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

/// Whether a bracket between these opens a part of a dotted name that is a word of Python's own: `main.<locals>.work`.
fn is_of_python(before: &str, rest: &str) -> bool {
    let Some((word, behind)) = rest.split_once('>') else { return false };
    (before.is_empty() || before.ends_with('.'))
        && (behind.is_empty() || behind.starts_with('.'))
        && !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase())
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
            ("void Log$$Lambda$1/0x00007fa3f4000a08.run()", "Log$$Lambda.run"),
            ("org.apache.Log$$Lambda/0x00007fa3f4000a08.run", "Log$$Lambda.run"),
            ("$gen_server:try_handle_call/4", "gen_server:try_handle_call/4"),
            ("$'Elixir.Shop.Cart':'-total/1-fun-0-'/2-CodeInfoPrologue", "Shop.Cart.-total/1-fun-0-/2"),
            ("main.<locals>.<lambda>", "main.<locals>.<lambda>"),
            ("<listcomp>.<dictcomp>", "<listcomp>.<dictcomp>"),
            ("<module>", "<module>"),
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
