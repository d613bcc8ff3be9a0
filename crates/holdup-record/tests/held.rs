//! Programs that are gone when the recording ends.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use holdup_base::Claim;
use holdup_record::{Options, Target, record};
use holdup_testing::{Need, has};

#[test]
fn what_is_removed_is_kept_open() {
    if !has(Need::Recording) {
        return;
    }
    let dir = tempfile::tempdir_in("/tmp").expect("dir");
    let program = dir.path().join("job");
    let run = format!("cp /bin/sleep {0} && {0} 0.5 && rm {0}", program.display());
    let argv = ["sh", "-c", &run].map(Into::into);
    let options = Options { target: Target::Command { argv: argv.into() }, ..Options::default() };
    let claim = Claim::take(&dir.path().join("spool")).expect("spool").0;
    let (outcome, _) = record(&options, claim, &mut |_| {}, &AtomicBool::new(false)).expect("recording");
    assert!(!program.exists());
    let held: Vec<&str> = outcome.left.held.iter().map(|held| held.path()).collect();
    assert!(held.iter().any(|path| Path::new(path) == program), "{held:?}");
}
