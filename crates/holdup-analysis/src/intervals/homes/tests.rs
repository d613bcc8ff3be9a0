//! Where threads are at home, by what they do.

use super::*;

/// Functions, the outermost first; `application` is how deep the innermost of the application lies.
fn path(functions: &[u64], application: usize) -> Path {
    Path {
        space: SpaceId(1),
        functions: functions.to_vec(),
        application,
        hash: functions.iter().sum(),
        says_lock: false,
        blind: false,
        receives: false,
        asks: false,
        keeps_thread: false,
        parked: false,
        in_loop: false,
    }
}

#[test]
fn short_sleeps_in_a_row_beside_work_may_be_for_something() {
    let path = |functions: &[u64], says_lock| Rc::new(Path { says_lock, ..path(functions, 2) });
    let naps = |again, ns| Seen { kind: WaitKind::Timer, waits: 100, again, ns, ..Seen::default() };
    let judged = |says_lock, seen, samples| {
        let activity = Activity {
            waits: vec![(path(&[1, 2, 3], says_lock), StackId::NONE, seen)],
            samples: vec![(path(&[1, 4], false), samples)],
            answers: 0,
            busiest: 0,
        };
        activity.judge(&Trie::default())[0].2
    };
    let short = 100 * 1_000_000;
    assert_eq!(judged(false, naps(90, short), 50), Place::Unsure, "one after the other, and work besides");
    assert_eq!(judged(false, naps(5, short), 50), Place::Home, "work after each: it keeps a pace");
    assert_eq!(judged(false, naps(90, short), 5), Place::Home, "next to no work: it keeps house");
    assert_eq!(judged(false, naps(90, 1000 * short), 50), Place::Home, "seconds long");
    assert_eq!(judged(true, naps(5, short), 5), Place::Middle, "the busy handler of a lock");
}

#[test]
fn a_short_sleep_of_which_nothing_is_seen_may_be_for_something() {
    let path = |blind| Rc::new(Path { blind, hash: u64::from(blind), ..path(&[1], 0) });
    let judged = |blind, ns, samples| {
        let naps = Seen { kind: WaitKind::Timer, waits: 10, ns, ..Seen::default() };
        let activity = Activity {
            waits: vec![(path(blind), StackId::NONE, naps)],
            samples: vec![(path(false), samples)],
            answers: 0,
            busiest: 0,
        };
        activity.judge(&Trie::default())[0].2
    };
    assert_eq!(judged(true, 10_000_000, 5), Place::Unsure);
    assert_eq!(judged(false, 10_000_000, 5), Place::Home);
    assert_eq!(judged(true, 10_000_000, 1), Place::Home, "next to no work: it keeps house");
    assert_eq!(judged(true, 20 * LONGEST_NAP_NS, 5), Place::Home, "seconds long");
}

#[test]
fn a_short_sleep_in_what_follows_on_input_may_be_for_something() {
    let path = |functions: &[u64]| Rc::new(path(functions, functions.len() - 1));
    // serve ─ 2 ┬ 3 poll          serve ─ 2 ┬ 4 handle ┬ 5 compute
    //           └ 4 handle                             └ 6 sleep
    let input = Seen { kind: WaitKind::Input, waits: 20, from_outside: 20, ..Seen::default() };
    let nap = Seen { kind: WaitKind::Timer, waits: 100, ns: 1_000_000_000, ..Seen::default() };
    let served = |sleeps_at: &[u64], input, receives, answers| {
        let activity = Activity {
            waits: vec![(path(&[1, 2, 3]), StackId::NONE, input), (path(sleeps_at), StackId::NONE, nap)],
            samples: vec![(path(&[1, 2, 4, 5]), 50), (path(&[1, 2, 3, 7]), receives)],
            answers,
            busiest: 0,
        };
        activity.judge(&Trie::default())[1].2
    };
    assert_eq!(served(&[1, 2, 4, 6], input, 100, 0), Place::Unsure, "most of the work is to get requests");
    assert_eq!(served(&[1, 2, 6], input, 100, 0), Place::Home);
    let answering = |sleeps_at: &[u64], input, answers| served(sleeps_at, input, 0, answers);
    let judged = |sleeps_at: &[u64], input| answering(sleeps_at, input, 0);
    assert_eq!(judged(&[1, 2, 4, 6], input), Place::Unsure, "within what it does with its input");
    assert_eq!(judged(&[1, 2, 6], input), Place::Home, "beside it: a pace");
    let none = Seen { from_outside: 0, ..input };
    assert_eq!(judged(&[1, 2, 4, 6], none), Place::Home, "no input arrives at all");
    assert_eq!(answering(&[1, 2, 4, 6, 7], none, 90), Place::Unsure, "it was always there, and is answered");
    assert_eq!(answering(&[1, 2, 4, 6, 7], none, 20), Place::Home, "now and then, for another reason");
    assert_eq!(answering(&[1, 2, 4], none, 90), Place::Home, "what works sleeps itself: a pace");
}

#[test]
fn threads_of_a_pool_tell_together_where_their_work_lies() {
    let path = |functions: &[u64]| Rc::new(path(functions, 2));
    // start ─ 2 ─ pool ┬ 4 take a request          start ─ 2 ─ pool ─ 5 handle ┬ 6 ask another
    //                  └ 5 handle                                              └ 7 compute
    let waits = |kind| Seen { kind, waits: 5, from_peers: 5, ..Seen::default() };
    let activity = Activity {
        waits: vec![
            (path(&[1, 2, 3, 4]), StackId::NONE, waits(WaitKind::Condition)),
            (path(&[1, 2, 3, 5, 6]), StackId::NONE, waits(WaitKind::Input)),
        ],
        samples: vec![(path(&[1, 2, 3, 5, 7]), 1)],
        ..Activity::default()
    };
    let places = |crew: &Trie| activity.judge(crew).into_iter().map(|(_, _, place, _)| place).collect::<Vec<_>>();
    assert_eq!(places(&Trie::default()), [Place::Home; 2], "one thread has done too little");
    let mut crew = Trie::default();
    (0..20).for_each(|_| activity.add_work(&mut crew));
    assert_eq!(places(&crew), [Place::Home, Place::Middle]);
    assert_eq!(activity.begins_in(), Some(3));
}

/// A server whose clients ask so often that it never has to wait for them: its sleeps are all its waits.
#[test]
fn who_takes_input_between_sleeps_and_answers_is_asked() {
    let judged = |receives, answers, waits_for_input: u32| {
        let works = |receives| Rc::new(Path { receives, hash: 7, ..path(&[1, 2], 2) });
        let sleep = Seen { kind: WaitKind::Timer, waits: 100, ns: 100 * 2 * LONGEST_NAP_NS, ..Seen::default() };
        let input = Seen { kind: WaitKind::Input, waits: 9, from_outside: waits_for_input, ..Seen::default() };
        let mut activity = Activity {
            waits: vec![(works(false), StackId(1), sleep), (works(false), StackId(2), input)],
            samples: vec![(works(receives), 5), (works(false), 20)],
            answers,
            busiest: 0,
        };
        activity.presume();
        let place = activity.judge(&Trie::default())[0].2;
        assert_eq!(activity.waits.iter().any(|(_, _, seen)| seen.presumed), place == Place::Middle);
        place
    };
    assert_eq!(judged(true, 90, 0), Place::Middle);
    assert_eq!(judged(false, 90, 0), Place::Home, "it takes nothing: it keeps a pace");
    assert_eq!(judged(true, 20, 0), Place::Home, "it answers nobody");
    assert_eq!(judged(true, 90, 9), Place::Home, "whoever asks wakes it, and would be seen to ask");
}

#[test]
fn a_loop_that_never_runs_within_a_task_is_at_home() {
    let judged = |in_loop| {
        let arrives = Seen { kind: WaitKind::Input, waits: 20, from_outside: 20, ..Seen::default() };
        let timed = Seen { kind: WaitKind::Input, waits: 20, ..Seen::default() };
        let waits = Rc::new(Path { in_loop, ..path(&[1, 4, 5, 6], 3) });
        let activity = Activity {
            waits: vec![(waits, StackId::NONE, timed), (Rc::new(path(&[1, 2], 2)), StackId::NONE, arrives)],
            samples: vec![(Rc::new(path(&[1, 4, 5, 7], 4)), 20)],
            answers: 0,
            busiest: 20,
        };
        activity.judge(&Trie::default())[0].2
    };
    assert_eq!([false, true].map(judged), [Place::Middle, Place::Home]);
}
