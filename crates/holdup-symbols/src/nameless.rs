//! Code that was compiled at run time, of a process that told no names of it: which runtime it is, and what makes it tell.

use std::sync::Arc;

use holdup_base::text::is_version_of;
use holdup_trace::Image;

use crate::object::base_name;

/// What such code is called.
pub(crate) const NAME: &str = "code compiled at run time";

/// How the program or library of a runtime begins, its name, and what makes it tell.
const RUNTIMES: &[(&str, &str, &str)] = &[
    ("libjvm.so", "Java", "record it while it runs for a second and more, or start it with -XX:+DumpPerfMapAtExit"),
    ("mono-sgen", "Mono", "start it with mono --jitmap"),
    ("libcoreclr.so", ".NET", "start it with DOTNET_PerfMapEnabled=1"),
    ("libnode.so", "Node", "start it with NODE_OPTIONS=--perf-basic-prof"),
    ("node", "Node", "start it with NODE_OPTIONS=--perf-basic-prof"),
    ("nodejs", "Node", "start it with NODE_OPTIONS=--perf-basic-prof"),
    ("libruby", "Ruby", "start it with RUBYOPT=--yjit-perf=map (3.3 and newer)"),
    ("ruby", "Ruby", "start it with RUBYOPT=--yjit-perf=map (3.3 and newer)"),
    ("php", "PHP", "start it with -d opcache.jit_debug=0x20"),
    ("opcache.so", "PHP", "start it with -d opcache.jit_debug=0x20"),
    ("libpython3", "Python", "start it with PYTHONPERFSUPPORT=1 (3.12 and newer)"),
    ("python3", "Python", "start it with PYTHONPERFSUPPORT=1 (3.12 and newer)"),
    ("beam.smp", "Erlang", "start it with ERL_FLAGS='+JPperf true' (OTP 24 and newer)"),
    ("libluajit", "LuaJIT", "record it with -jp, or without the compiler (-joff)"),
];

/// What would give the code of process `pid` names; `images` are what it maps. Of a runtime that is not known there is nothing to say.
pub(crate) fn hint(images: &[Arc<Image>], pid: u32) -> Option<String> {
    let of = |(file, ..): &&(&str, &str, &str)| {
        images.iter().filter(|image| image.pid == pid).any(|image| is_version_of(base_name(&image.path), file))
    };
    let (_, runtime, what) = RUNTIMES.iter().find(of)?;
    Some(format!("code that {runtime} compiled in process {pid} has no names: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_of(paths: &[&str]) -> Option<String> {
        let image = |path: &&str| Arc::new(Image { path: (*path).into(), pid: 7, ..Image::default() });
        hint(&paths.iter().map(image).collect::<Vec<_>>(), 7)
    }

    #[test]
    fn runtimes_are_told_by_what_is_mapped() {
        for (path, said) in [
            ("/usr/lib/jvm/server/libjvm.so", "code that Java compiled in process 7"),
            ("/usr/bin/node", "--perf-basic-prof"),
            ("/usr/lib/libnode.so.108", "--perf-basic-prof"),
            ("/usr/share/dotnet/libcoreclr.so", "DOTNET_PerfMapEnabled=1"),
            ("/usr/bin/php8.2", "opcache.jit_debug"),
            ("/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "+JPperf true"),
            ("/usr/lib/libruby-3.3.so.3.3", "--yjit-perf=map"),
        ] {
            let hint = hint_of(&["/lib/libc.so.6", path]).unwrap();
            assert!(hint.contains(said), "{path}: {hint}");
        }
        assert_eq!(hint_of(&["/usr/bin/nodeinfo", "/bin/phpize"]), None);
    }

    #[test]
    fn stacks_and_heaps_are_no_code() {
        use holdup_trace::is_made_at_run_time as is_it;
        assert!(is_it("//anon") && is_it("/memfd:doublemapper (deleted)") && is_it("memfd:vmem") && is_it("[anon:v8]"));
        assert!(!is_it("[heap]") && !is_it("[stack]") && !is_it("/usr/lib/x.so"));
    }
}
