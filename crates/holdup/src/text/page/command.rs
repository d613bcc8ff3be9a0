//! What a program worked on, as its command line tells.

use holdup_analysis::report::Culprit;
use holdup_base::text::clean;

/// The program with what it worked on: `python3 manage.py`, `cc1: server.c 24 %, module.c 20 %, 6 others`. `None` where the command
/// line does not tell.
pub fn command(c: &Culprit) -> Option<String> {
    const NAMED: usize = 3;
    const ALL: f64 = 0.95;
    /// The kernel keeps so much of a name.
    const NAME: usize = 15;
    let program = clean(&c.process);
    const LEAST: f64 = 0.1;
    let first = c.works_on.first().filter(|first| first.share > LEAST)?;
    if first.share > ALL {
        let what = clean(&first.what);
        // A script that is started by its own name.
        if what == program {
            return None;
        }
        let is_cut = program.len() == NAME && what.starts_with(&*program);
        return Some(if is_cut { what.into_owned() } else { format!("{program} {what}") });
    }
    let mut parts: Vec<String> =
        (c.works_on.iter().take(NAMED)).map(|on| format!("{} {:.0} %", clean(&on.what), 100.0 * on.share)).collect();
    let more = c.works_on.len().saturating_sub(NAMED);
    parts.extend((more > 0).then(|| format!("{more} others")));
    Some(format!("{program}: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use holdup_analysis::report::WorkedOn;

    use super::*;

    #[test]
    fn a_script_that_is_its_own_program_is_named_once() {
        let of = |process: &str, what: &str| {
            let on = WorkedOn { what: what.to_owned(), share: 1.0 };
            command(&Culprit { process: process.to_owned(), works_on: vec![on], ..Culprit::default() })
        };
        assert_eq!(of("python3", "manage.py").as_deref(), Some("python3 manage.py"));
        assert_eq!(of("deploy.sh", "deploy.sh"), None);
        assert_eq!(of("semparallel-run", "semparallel-run.sh").as_deref(), Some("semparallel-run.sh"));
    }
}
