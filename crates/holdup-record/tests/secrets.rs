//! What lies on the stack of a recorded program is in the spool while it is recorded, and not in the result.

use std::ffi::OsString;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdup_base::Claim;
use holdup_record::{Options, Target, record};
use holdup_testing::{Need, has};
use holdup_trace::{Destination, FrameId, Image, RawStack, Trace, TraceBuilder, Unwinder, file};

/// What the recorded program is to do: hold the content of this file on its stack.
const HOLD: &str = "HOLDUP_TEST_HOLD";

/// Not a test of its own: holds a secret, if a test says so.
#[test]
fn holder() {
    let Some(path) = std::env::var_os(HOLD) else { return };
    let mut stack = [0u8; 32];
    let secret = std::fs::read(path).expect("the secret");
    stack[..secret.len()].copy_from_slice(&secret);
    for _ in 0..20 {
        black_box(&mut stack);
        std::thread::sleep(Duration::from_millis(5));
    }
    black_box(&mut stack);
}

/// Takes every word of a stack for a caller, and keeps the copies.
struct Worst(Arc<Mutex<Vec<RawStack>>>);

impl Unwinder for Worst {
    fn unwind(&mut self, _: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        self.0.lock().expect("copies").push(raw.clone());
        let words = raw.bytes.as_chunks::<8>().0.iter().map(|w| u64::from_ne_bytes(*w));
        ([raw.ip].into_iter().chain(words).collect(), true)
    }
}

fn contains(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|w| w == secret)
}

#[test]
fn a_secret_on_a_stack_is_in_the_spool_and_not_in_the_result() {
    if !has(Need::Recording) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let hidden = dir.path().join("secret");
    let now = std::time::UNIX_EPOCH.elapsed().expect("time").as_nanos() as u64;
    let secret = format!("pw-{:08x}-{now:016x}", std::process::id());
    let secret = secret.as_bytes();
    std::fs::write(&hidden, secret).expect("write");
    let holder = std::env::current_exe().expect("this").into_os_string();
    let variable = OsString::from(format!("{HOLD}={}", hidden.display()));
    let argv = vec!["env".into(), variable, holder, "--exact".into(), "holder".into()];
    let options = Options { target: Target::Command { argv }, ..Options::default() };
    let spool_path = dir.path().join("a.spool");
    let (spool, _) = Claim::take(&spool_path).expect("spool");
    let (outcome, spool) = record(&options, spool, &mut |_| {}, &AtomicBool::new(false)).expect("recording");
    assert_eq!(outcome.exit_code, Some(0));

    let copies = Arc::default();
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    builder.set_unwinder(Box::new(Worst(Arc::clone(&copies))));
    holdup_spool::read_parts(spool.parts().expect("files"), &spool_path, &mut builder).expect("spool");
    let result = dir.path().join("a.holdup");
    file::write(&builder.finish(None).expect("trace"), &result).expect("write");
    let copies = copies.lock().expect("copies");
    assert!(copies.iter().any(|raw| contains(&raw.bytes, secret)), "{} copies without it", copies.len());

    assert!(!contains(&std::fs::read(&result).expect("read"), secret));
    check(&file::read(&result).expect("trace"), secret);
}

/// No text has the secret, and no address any eight bytes of it.
fn check(trace: &Trace, secret: &[u8]) {
    assert!(trace.strings.iter().all(|text| !contains(text.as_bytes(), secret)));
    let words: Vec<u64> = secret.windows(8).map(|w| u64::from_ne_bytes(w.try_into().expect("eight"))).collect();
    let mut addresses = trace.locks.address.clone();
    addresses.extend(trace.samples.load().expect("samples").ip);
    addresses.extend((0..).map_while(|i| trace.stacks.frame(FrameId(i))).map(|f| f.address));
    assert!(!addresses.is_empty(), "nothing to look at");
    // A caller's address is one less.
    let hit = addresses.iter().find(|a| words.contains(a) || words.contains(&(**a + 1)));
    assert_eq!(hit, None);
}
