//! What a process works on, where its program does different things by its command line: an interpreter's script, a compiler's source
//! file or crate, a Java machine's class, a command of Git, the file that is packed or converted.
//!
//! Of the command line only that one word is kept, without its folders: others may be secret.
//!
//! To add a program: a row of [`PROGRAMS`], or a name in [`ON_LAST`] or [`ON_FIRST`].

use std::fs::File;
use std::io::Read;

use holdup_spool::Side;

/// So much of a command line is looked at, in bytes.
const LONGEST: u64 = 16 << 10;
/// Longer names are cut, in characters.
const SHOWN: usize = 48;
/// So many processes are looked at for each round: a storm of short ones is not worth its cost.
const EACH_ROUND: usize = 64;

/// How a program's command line tells what it works on.
enum Told {
    /// The word behind this option.
    Behind(&'static str),
    /// The first word that is no option.
    First(Options),
    /// The last word.
    Last,
}

/// The options that matter before the first word that is none.
#[derive(Clone, Copy)]
struct Options {
    /// The next word belongs to the option.
    takes: &'static [&'static str],
    /// The next word is what is looked for.
    names: &'static [&'static str],
    /// The next word is a program's text, or there is no script: what follows may hold secrets, and nothing is told. Short ones
    /// may stand together, as in `-lc`.
    text: &'static [&'static str],
}

impl Options {
    /// Whether what follows this option is no script.
    fn has_text(&self, option: &str) -> bool {
        let together = |short: &str| !option.starts_with("--") && short.len() == 2 && option[1..].contains(&short[1..]);
        // A dash alone is the standard input.
        option == "-" || self.text.iter().any(|text| option == *text || option.starts_with('-') && together(text))
    }
}

use Told::{Behind, First, Last};

const SHELL: Options = Options { takes: &["-o", "-O"], names: &[], text: &["-c", "-s"] };
const PYTHON: Options = Options { takes: &["-W", "-X"], names: &["-m"], text: &["-c"] };
const JAVA: Options = Options {
    takes: &[
        "-cp",
        "-classpath",
        "--class-path",
        "-p",
        "--module-path",
        "--add-modules",
        "--add-opens",
        "--add-exports",
    ],
    names: &["-jar", "-m", "--module"],
    text: &[],
};
const RUBY: Options = Options { takes: &["-I", "-r", "-C"], names: &[], text: &["-e"] };
const PERL: Options = Options { takes: &[], names: &[], text: &["-e", "-E"] };
const PHP: Options = Options { takes: &["-c", "-d"], names: &["-f"], text: &["-r"] };
const NODE: Options =
    Options { takes: &["-r", "--require", "--import"], names: &[], text: &["-e", "--eval", "-p", "--print"] };
const LUA: Options = Options { takes: &["-l"], names: &[], text: &["-e"] };
const JULIA: Options = Options { takes: &["-p", "-t", "-L", "-O", "-C"], names: &[], text: &["-e", "-E"] };
const GIT: Options = Options {
    takes: &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--shallow-file"],
    names: &[],
    text: &[],
};
const COMMAND: Options = Options { takes: &[], names: &[], text: &[] };

/// It compiles in its own process; as one that was started for it, it is told the file by name.
const CLANG: &[Told] = &[Behind("-main-file-name"), Behind("-c"), Behind("-o")];

/// Programs by the name of their file; of several ways the first that has an answer gives it.
const PROGRAMS: &[(&str, &[Told])] = &[
    ("rustc", &[Behind("--crate-name")]),
    ("clippy-driver", &[Behind("--crate-name")]),
    ("cc1", &[Behind("-dumpbase"), Last]),
    ("cc1plus", &[Behind("-dumpbase"), Last]),
    ("f951", &[Behind("-dumpbase"), Last]),
    ("lto1", &[Behind("-dumpbase")]),
    ("clang", CLANG),
    ("clang++", CLANG),
    ("collect2", &[Behind("-o")]),
    ("ld", &[Behind("-o")]),
    ("ld.bfd", &[Behind("-o")]),
    ("ld.gold", &[Behind("-o")]),
    ("ld.lld", &[Behind("-o")]),
    ("rust-lld", &[Behind("-o")]),
    ("mold", &[Behind("-o")]),
    ("java", &[First(JAVA)]),
    ("python", &[First(PYTHON)]),
    ("pypy", &[First(PYTHON)]),
    ("ruby", &[First(RUBY)]),
    ("perl", &[First(PERL)]),
    ("php", &[First(PHP)]),
    ("node", &[First(NODE)]),
    ("lua", &[First(LUA)]),
    ("julia", &[First(JULIA)]),
    ("awk", &[Behind("-f")]),
    ("gawk", &[Behind("-f")]),
    ("mawk", &[Behind("-f")]),
    ("bash", &[First(SHELL)]),
    ("dash", &[First(SHELL)]),
    ("sh", &[First(SHELL)]),
    ("zsh", &[First(SHELL)]),
    ("git", &[First(GIT)]),
    ("go", &[First(COMMAND)]),
    ("cargo", &[First(COMMAND)]),
    ("dotnet", &[First(COMMAND)]),
    ("openssl", &[First(COMMAND)]),
    ("make", &[Behind("-C")]),
];

/// Programs that work on the file, or what else they are told, that stands last;
#[rustfmt::skip]
const ON_LAST: &[&str] = &[
    "b2sum", "bibtex", "biber", "brotli", "bzip2", "cbc", "cksum", "clang-tidy", "clasp", "cppcheck", "cvc5", "cwebp", "dvips", "fastqc", "flac", "gs", "gzip", "inkscape",
    "jpegoptim", "jpegtran", "kissat", "lualatex", "lz4", "lzip", "lzma", "makeindex", "md5sum", "minisat", "mogrify", "oggenc", "opusenc", "optipng",
    "pandoc", "pbzip2", "pdflatex", "pigz", "plzip", "pngcrush", "povray", "rsvg-convert", "sha1sum", "sha224sum", "sha256sum", "sha384sum",
    "sha512sum", "sort", "tex", "wc", "xelatex", "xz", "yosys", "z3", "zopfli", "zpaq", "zstd",
];
/// or first.
const ON_FIRST: &[&str] =
    &["bowtie2", "bwa", "convert", "dot", "lame", "magick", "mksquashfs", "npm", "npx", "samtools", "tesseract", "tsc"];

/// Where Go keeps its own tools, whose names are common words.
const GO_TOOLS: &str = "/pkg/tool/";
/// The same of these.
const GO: &[(&str, &[Told])] = &[("compile", &[Behind("-p")]), ("link", &[Behind("-o")])];

/// Appends what processes work on that have just begun a program. What has ended since is not told of.
pub(crate) fn see(side: &mut Vec<Side>) {
    let begun = side.iter().filter_map(|item| match item {
        Side::Exec { t, pid } => Some((*t, *pid)),
        _ => None,
    });
    let found: Vec<Side> = begun.take(EACH_ROUND).filter_map(|(t, pid)| of(t, pid)).collect();
    side.extend(found);
}

/// What a process works on, as something that is so since `t`.
pub(crate) fn of(t: u64, pid: u32) -> Option<Side> {
    let mut line = Vec::new();
    File::open(format!("/proc/{pid}/cmdline")).ok()?.take(LONGEST).read_to_end(&mut line).ok()?;
    let line = String::from_utf8_lossy(&line);
    let what = subject(&line.split_terminator('\0').collect::<Vec<_>>())?;
    Some(Side::Subject { t, pid, what })
}

/// The word of a command line that tells what it works on.
fn subject(words: &[&str]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let programs = if program.contains(GO_TOOLS) { GO } else { PROGRAMS };
    // A login shell's name begins with a dash; `python3.11` is python.
    let program = base(program).trim_start_matches('-');
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || ".-".contains(c));
    let is_it = |name: &&str| program.strip_prefix(*name).is_some_and(is_version);
    let row = programs.iter().find(|(name, _)| is_it(name)).map(|(_, told)| *told);
    let on_last = || ON_LAST.iter().any(is_it).then_some([Last].as_slice());
    let on_first = || ON_FIRST.iter().any(is_it).then_some([First(COMMAND)].as_slice());
    let told = row.or_else(on_last).or_else(on_first)?;
    let word = base(told.iter().find_map(|told| word(told, arguments))?);
    (!word.is_empty()).then(|| word.chars().take(SHOWN).collect())
}

fn word<'a>(told: &Told, arguments: &[&'a str]) -> Option<&'a str> {
    let mut words = arguments.iter().copied();
    let word = match told {
        Behind(option) => words.find(|word| word == option).and_then(|_| words.next()),
        First(options) => loop {
            match words.next()? {
                w if options.names.contains(&w) => break words.next(),
                w if options.takes.contains(&w) => _ = words.next(),
                w if options.has_text(w) => return None,
                w if w.starts_with('-') => {}
                w => break Some(w),
            }
        },
        Last => words.last(),
    };
    // A number belongs to an option before it.
    word.filter(|word| !word.starts_with('-') && word.contains(char::is_alphabetic))
}

fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<String> {
        subject(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn command_lines_tell_what_is_worked_on() {
        for (line, what) in [
            (
                "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet -I . src/server.c -dumpbase server.c -o /tmp/x.s",
                "server.c",
            ),
            ("cc1plus -quiet /src/a.cpp", "a.cpp"),
            ("/usr/bin/clang++ -O2 -MD -o CMakeFiles/tables.o -c src/tables.cpp", "tables.cpp"),
            ("/usr/bin/clang++ -fuse-ld=lld a.o -o shop", "shop"),
            ("awk -f report.awk orders.csv", "report.awk"),
            ("awk {print} orders.csv", ""),
            ("/home/u/.rustup/bin/rustc --crate-name serde_derive --edition=2021 src/lib.rs", "serde_derive"),
            ("/usr/bin/ld -o target/app a.o b.o", "app"),
            ("/usr/lib/go/pkg/tool/linux_amd64/compile -o /tmp/x -p net/http -c=4", "http"),
            ("python3.11 -X dev -u /srv/shop/manage.py runserver", "manage.py"),
            ("python3 -m gunicorn app:app", "gunicorn"),
            ("java -Xmx4g -cp /a:/b com.example.Main --password x", "com.example.Main"),
            ("/usr/bin/java -jar /opt/shop.jar", "shop.jar"),
            ("java -ea -server -Dsecret=x Main", "Main"),
            ("bash -eu -o pipefail deploy.sh secret", "deploy.sh"),
            ("python3 -W error -bb tests.py", "tests.py"),
            ("node --require ./x.js dist/server.js", "server.js"),
            ("-bash", ""),
            ("/bin/sh ./configure --prefix=/usr", "configure"),
            ("perl -w run.pl", "run.pl"),
            ("git -c core.x=secret --shallow-file  pack-objects --stdout", "pack-objects"),
            ("/usr/bin/make -C src/engine all", "engine"),
            ("cargo build --release", "build"),
            ("/usr/bin/gzip -9 /var/log/app.log", "app.log"),
            ("convert in/a.png -resize 50% out/a.png", "a.png"),
            ("pdflatex -interaction=batchmode thesis.tex", "thesis.tex"),
        ] {
            assert_eq!(told(line).unwrap_or_default(), what, "{line}");
        }
    }

    #[test]
    fn nothing_else_of_a_command_line_is_kept() {
        for line in [
            "python3 -c print('secret')",
            "sh -c curl\u{a0}-u\u{a0}user:secret",
            "node -e secret",
            "bash -lc secret",
            "sh -exc secret",
            "sh -s secret",
            "python3 - secret",
            "python3 -Ic secret",
            "perl -lane secret",
            "ruby -ne secret",
            "node -pe secret",
            "compile -p secret",
            "mysql -psecret shop",
            "ruby -e secret",
            "ldconfig -o secret",
            "rustc --version",
            "make PASSWORD=secret",
            "gzip -c",
            "sort -n -k 2",
            "",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    #[test]
    fn a_process_is_looked_at_when_it_begins() {
        let mut side = vec![Side::Exec { t: 7, pid: u32::MAX - 1 }, Side::Exec { t: 8, pid: std::process::id() }];
        see(&mut side);
        assert_eq!(side.len(), 2, "this test is no interpreter, and the other one is not there: {side:?}");
    }
}
