//! What programs work on, and what that tells of what to do.

use std::path::Path;

use crate::report::Culprit;

/// What to do where several processes of a program work on several things, and one of these takes most of the time.
pub(super) fn begin_with(c: &Culprit) -> Option<String> {
    let most = c.works_on.first().filter(|on| on.share > 0.5 && c.works_on.len() > 1 && c.processes > 1)?;
    let (what, share) = (&most.what, 100.0 * most.share);
    Some(format!(
        "Begin with {what} ({share:.0} % of it), or cut it into smaller parts, so that others can work meanwhile."
    ))
}

/// Whether it ran the top of a Python module that is not the program's own script: it was imported.
pub(super) fn is_import(c: &Culprit) -> bool {
    let file = match c.source.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => Path::new(file),
        _ => Path::new(&c.source),
    };
    let is_script =
        |what: &str| file.ends_with(what) || Path::new(what).ends_with(file) || file.ends_with("__main__.py");
    c.function == "<module>" && c.works_on.first().is_some_and(|on| !is_script(&on.what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::WorkedOn;

    #[test]
    fn what_takes_most_of_several_is_begun_with() {
        let of = |processes: usize, all: &[(&str, f64)]| Culprit {
            processes,
            works_on: all.iter().map(|(what, share)| WorkedOn { what: (*what).into(), share: *share }).collect(),
            ..Culprit::default()
        };
        let advice = begin_with(&of(3, &[("grammar.cpp", 0.8), ("main.cpp", 0.1)])).unwrap();
        assert!(advice.starts_with("Begin with grammar.cpp (80 % of it)"), "{advice}");
        assert_eq!(begin_with(&of(3, &[("a.cpp", 0.4), ("b.cpp", 0.3)])), None);
        assert_eq!(begin_with(&of(3, &[("worker.py", 1.0)])), None, "all work on the same");
        assert_eq!(begin_with(&of(1, &[("a.cpp", 0.8), ("b.cpp", 0.2)])), None);
    }

    #[test]
    fn an_import_is_a_module_that_is_not_the_script() {
        let of = |function: &str, source: &str, what: &[&str]| Culprit {
            function: function.into(),
            source: source.into(),
            works_on: what.iter().map(|what| WorkedOn { what: (*what).into(), share: 1.0 }).collect(),
            ..Culprit::default()
        };
        assert!(is_import(&of("<module>", "torch/__init__.py", &["loader.py"])));
        assert!(
            !is_import(&of("<module>", "train.py:8", &["train.py"]))
                && !is_import(&of("<module>", "a/train.py:8", &["train.py"]))
        );
        assert!(!is_import(&of("<module>", "loader.py", &["loader.py"])), "its own work may stand there");
        assert!(!is_import(&of("<module>", "pkg/__main__.py", &["pkg"])));
        assert!(!is_import(&of("<module>", "torch/__init__.py", &[])), "nobody knows the script");
        assert!(!is_import(&of("load", "torch/__init__.py:1", &["loader.py"])));
    }
}
