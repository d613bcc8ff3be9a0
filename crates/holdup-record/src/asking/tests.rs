use holdup_trace::Image;

use super::*;

fn map(pid: u32, path: &str) -> Side {
    let image = Image { start: 0x1000, end: 0x2000, file_offset: 0, path: path.into(), build_id: None, pid };
    Side::Map { t: 0, image }
}

fn answer(asking: &mut Asking, pid: u32, answer: Result<Answer, Refusal>) {
    let (_, reply) = channel();
    asking.pending = Some(Pending { pid, until: Instant::now(), reply });
    asking.answered(((b"1 1 before\n".to_vec(), Vec::new()), answer, Insides::default()));
}

fn me() -> u32 {
    std::process::id()
}

#[test]
fn who_maps_the_machine_is_seen_once() {
    let mut asking = Asking::new(BUDGET);
    asking.see(&[map(me(), "/usr/lib/jvm/server/libjvm.so"), map(7, "/lib/libc.so.6"), map(me(), "/x/libjvm.so")]);
    assert_eq!(asking.machines.keys().collect::<Vec<_>>(), [&me()]);
    assert!(asking.machines[&me()].due.is_some_and(|due| due > Instant::now()), "not at once");
    asking.step(&[]);
    assert!(asking.pending.is_none());
}

#[test]
fn there_is_a_limit_to_machines() {
    let mut asking = Asking::new(BUDGET);
    for pid in 1..=MACHINES as u32 + 5 {
        asking.see(&[map(pid, "/libjvm.so")]);
    }
    assert_eq!((asking.machines.len(), asking.left_out), (MACHINES, 5));
}

#[test]
fn what_was_told_stays_when_nothing_more_is() {
    let mut asking = Asking::new(BUDGET);
    asking.see(&[map(me(), "/libjvm.so")]);
    let told = Answer { text: b"1 1 f\n".to_vec(), frames: Vec::new(), spent: Duration::from_millis(100) };
    answer(&mut asking, me(), Ok(told));
    let machine = &asking.machines[&me()];
    assert_eq!(machine.text, b"1 1 f\n");
    assert!(machine.due.is_some_and(|due| due > Instant::now() + Duration::from_secs(15)), "it was dear");
    assert!((asking.spent_s() - 0.1).abs() < 1e-9);
    answer(&mut asking, me(), Err(Refusal::Silent(me())));
    assert_eq!(asking.machines[&me()].text, b"1 1 before\n");
    assert_eq!(asking.notes(&[]), [""; 0], "it has names");
}

#[test]
fn a_refusal_is_told_once_and_the_dead_are_not() {
    let mut asking = Asking::new(BUDGET);
    asking.see(&[map(me(), "/libjvm.so"), map(1, "/libjvm.so")]);
    answer(&mut asking, me(), Err(Refusal::Forbidden { pid: me(), place: "on its command line" }));
    answer(&mut asking, 1, Err(Refusal::NotJava(1)));
    for machine in asking.machines.values_mut() {
        assert!(machine.due.is_none());
        machine.text.clear();
    }
    let notes = asking.notes(&[]);
    assert!(notes.len() == 1 && notes[0].contains("-XX:+DisableAttachMechanism"), "{notes:?}");
}

#[test]
fn a_thread_that_does_not_come_back_is_given_up() {
    let mut asking = Asking::new(BUDGET);
    asking.see(&[map(me(), "/libjvm.so")]);
    let (_send, reply) = channel();
    asking.pending = Some(Pending { pid: me(), until: Instant::now(), reply });
    std::thread::sleep(Duration::from_millis(1));
    asking.step(&[]);
    assert!(asking.pending.is_none() && asking.stuck == 1);
    assert!(asking.machines[&me()].due.is_none());
    let (code, notes) = asking.end(&[]);
    assert!(code.is_empty() && notes[0].ends_with("did not answer in time"), "{notes:?}");
}

#[test]
fn only_those_that_are_meant() {
    assert!(is_meant(me(), &[]) && is_meant(me(), &[me()]) && is_meant(me(), &[attach::parent(me())]));
    let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    assert!(is_meant(other.id(), &[me()]) && !is_meant(me(), &[other.id()]));
    other.kill().unwrap();
    other.wait().unwrap();
}
