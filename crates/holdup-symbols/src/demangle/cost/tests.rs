use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

use super::*;
use crate::demangle::{Demangled, NAME_LIMIT, demangle};

/// Set in a process that is to demangle, with a bound on its CPU time.
const CHILD: &str = "HOLDUP_DEMANGLE_IN_CHILD";

/// What opens and what closes a level. The parser reads each of the first ones twice where something in them fails.
const LEVELS_OF: [(&str, &str, &str); 22] = [
    ("_Z1fI", "SaI", "E"),
    ("_Z1fI", "T_I", "E"),
    ("_Z1fI", "St1aI", "E"),
    ("_Z1fI", "TsCI1", ""),
    ("_Z1fIXcvi", "dl", ""),
    ("_Z1fI", "LSaI", "E1E"),
    ("_Z1fILN1aI", "LN1aI", "EE1E"),
    ("_Z1fIX", "L_Z1fIX", "EEvE"),
    ("_Z1fIXgs", "gs", ""),
    ("_ZN1acv", "NSt1aI", "EE"),
    ("_ZN1acvT_I", "T_I", "E"),
    ("_Z1fI", "FvU1aI", "EiE"),
    ("_Z1fIX", "srT_I", "E1a"),
    ("_Z1fIX", "nw_A", "_iE"),
    ("_Z1fI", "J", "E"),
    ("_Z1fI", "Dp", ""),
    ("_Z1fI", "DTcv", "1aE"),
    ("_Z1fIX", "cl", "E"),
    ("_Z1fIX", "plT_", ""),
    ("_Z1fI", "A_M1a", ""),
    ("_Z1fI", "Z1fI", "EvE1a"),
    ("_ZZ1fI", "N1AI", "EE"),
];

/// Something that is refused by the parser alone: there is no such type to go back to.
const AMISS: &str = "SZZ_";

/// A name with `depth` levels, whole but for what is in the innermost.
fn nested((begin, open, close): (&str, &str, &str), depth: usize, inner: &str) -> Option<String> {
    let body = format!("{begin}{}{inner}{}", open.repeat(depth), close.repeat(depth));
    // What closes the beginning.
    ["", "E", "EE", "EEE", "EEv", "Ev", "EvE", "EEEE", "EEvE", "v"]
        .iter()
        .map(|end| format!("{body}{end}"))
        .find(|name| cost(name) != Cost::NoName)
}

/// The costs of a kind of nesting grow until the limit, and from there on stay above.
#[test]
fn nesting_is_fair_up_to_a_depth_and_no_deeper() {
    for level in &LEVELS_OF[..5] {
        let costs: Vec<Cost> =
            (1..60).map(|depth| nested(*level, depth, "1a").map_or(Cost::NoName, |name| cost(&name))).collect();
        let fair = costs.iter().take_while(|c| **c == Cost::Fair).count();
        assert!((6..40).contains(&fair), "{level:?}: {fair} levels are fair");
        assert!(costs[fair..].iter().all(|c| *c == Cost::High), "{level:?}: {:?}", &costs[fair..]);
        let (last, next) = (nested(*level, fair, "1a").unwrap(), nested(*level, fair + 1, "1a").unwrap());
        assert_eq!(demangle(&next), Demangled { text: next.clone(), whole: false });
        // The others refer to what is not there.
        if matches!(level.1, "SaI" | "St1aI") {
            let name = demangle(&last);
            assert!(name.whole && name.text.matches('<').count() == fair + 1, "{last}: {}", name.text);
        }
    }
}

/// On a thread with half of the usual stack: `demangle` is called from parsers that use the other half.
#[test]
fn the_deepest_names_fit_on_the_stack() {
    let deepest = || {
        for level in LEVELS_OF {
            let name = demangle(&format!("{}{}", level.0, level.1.repeat(8000 / level.1.len())));
            assert!(name.text.len() <= NAME_LIMIT);
            let mut fair = 0;
            for (depth, inner) in (1..60).flat_map(|depth| ["1a", "i", "T_", AMISS].map(|inner| (depth, inner))) {
                let Some(raw) = nested(level, depth, inner) else { continue };
                fair += usize::from(cost(&raw) == Cost::Fair);
                demangle(&raw);
            }
            assert!(fair > 0, "{level:?}");
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(deepest).unwrap().join().unwrap();
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const PIECES: [&str; 56] = [
    "Sa", "St1a", "1a", "T_", "I", "N", "E", "S_", "X", "L", "J", "F", "Z", "Ul", "cv", "CI1", "dl", "gs", "sr", "on",
    "dn", "Dt", "Dp", "A_", "M", "P", "K", "U1a", "cl", "nw_", "tl", "il", "sp", "pl", "ng", "fL1p", "flpl", "dt", "v",
    "i", "Dv1_", "DO", "sP", "st", "C", "_Z1aI", "TV", "R", "te", "srT_", "srN", "qu", "fp_", "DT", "Ts", "D0",
];

/// Pieces of the grammar in any order, again and again, and closed as well as it goes.
fn any_name(random: &mut Random) -> String {
    let mut name = random.one_of(&["_Z1fI", "_ZN1aI", "_Z1fIX", "_ZN1acv", "_Z1fIL", "_Z"]).to_owned();
    let unit: String = (0..=random.below(4)).map(|_| random.one_of(&PIECES)).collect();
    name += &unit.repeat(1 + random.below(30));
    name += random.one_of(&["1a", "i", "T_", AMISS, "?"]);
    for _ in 0..60 {
        if cost(&name) != Cost::NoName {
            break;
        }
        name += random.one_of(&["E", "E", "E", "E", "1a", "i"]);
    }
    name
}

/// Runs a test of this file in a process of its own, which ends after `seconds` of CPU time.
fn in_child(test: &str, seconds: u64, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        setrlimit(Resource::RLIMIT_CPU, seconds, seconds).unwrap();
        return body();
    }
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([&name, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

/// Names put together at random, well-formed or not: all of them within the time of a process of their own.
#[test]
fn names_of_any_kind_end_soon() {
    in_child("names_of_any_kind_end_soon", 60, || {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut fair = 0;
        for _ in 0..20_000 {
            let raw = any_name(&mut random);
            fair += usize::from(cost(&raw) == Cost::Fair);
            assert!(demangle(&raw).text.len() <= NAME_LIMIT, "{raw}");
        }
        assert!(fair > 1000, "only {fair} names came to the parser");
    });
}

/// Each kind of nesting as deep as it is let through, with something inside that the parser refuses.
#[test]
fn what_fails_inside_of_all_levels_ends_soon() {
    in_child("what_fails_inside_of_all_levels_ends_soon", 60, || {
        let mut fair = 0;
        for (level, depth) in LEVELS_OF.into_iter().flat_map(|level| (1..60).map(move |depth| (level, depth))) {
            let Some(raw) = nested(level, depth, AMISS) else { continue };
            fair += usize::from(cost(&raw) == Cost::Fair);
            assert!(demangle(&raw).text.len() <= NAME_LIMIT, "{raw}");
        }
        assert!(fair > 200, "only {fair} names came to the parser");
    });
}
