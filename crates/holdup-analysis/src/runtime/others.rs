//! Runtimes of which little more is known than the lock that lets one thread at a time run the language, or the files that
//! interpret it.

use super::row::Runtime;
use crate::known::Known;

pub(super) const ONE_AT_A_TIME: &str = "Only one thread runs the language at a time: spread {} over processes, or do it in native code that lets the lock go.";

pub(super) const RUBY: Runtime = Runtime {
    language: "Ruby",
    interprets: |module| begins(module, &["libruby", "ruby"]),
    locks: &[Known::of_runtime(
        "Ruby's interpreter lock (GVL)",
        ONE_AT_A_TIME,
        &["gvl_acquire_worker", "thread_sched_wait_running_turn", "thread_sched_to_running_common", "rb_gvl_init"],
    )],
    ..Runtime::NONE
};

pub(super) const OCAML: Runtime = Runtime {
    locks: &[Known::of_runtime("OCaml's master lock", ONE_AT_A_TIME, &["st_masterlock_acquire", "st_thread_yield"])],
    ..Runtime::NONE
};

pub(super) const PHP: Runtime =
    Runtime { language: "PHP", interprets: |module| begins(module, &["libphp", "php"]), ..Runtime::NONE };

pub(super) const PERL: Runtime =
    Runtime { language: "Perl", interprets: |module| begins(module, &["libperl", "perl"]), ..Runtime::NONE };

pub(super) const LUA: Runtime =
    Runtime { language: "Lua", interprets: |module| begins(module, &["liblua", "lua"]), ..Runtime::NONE };

/// Whether a file's name, without its folders, begins so and goes on with a version at most: `php-fpm8.2`, `libruby-3.1.so.3.1`, `luajit`.
fn begins(module: &str, names: &[&str]) -> bool {
    let base = module.rsplit('/').next().unwrap_or(module);
    let rest = names.iter().find_map(|name| base.strip_prefix(name));
    let rest = rest.map(|rest| rest.strip_prefix("-fpm").or_else(|| rest.strip_prefix("jit")).unwrap_or(rest));
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(['.', '-']) || rest.starts_with(|c: char| c.is_ascii_digit())
    })
}
