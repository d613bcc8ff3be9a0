//! What databases, and those that send objects to each other, are said to work at. One tick is a millisecond.

#![allow(missing_docs)]

mod common;

use common::traffic::explained;
use common::*;
use holdup_trace::{Cpu, NameEvent, SampleEvent, SwitchState};

const KERNEL: u64 = 0xffff_ffff_8100_0000;
const NAMES: [(u64, &str); 21] = [
    (0x1000, "PostgresMain"),
    (0x2000, "AfterTriggerEndQuery"),
    (0x3000, "plpgsql_call_handler"),
    (0x4000, "ExecScan"),
    (0x5000, "heap_getnextslot"),
    (0x6000, "index_getnext_slot"),
    (0x7000, "tuplesort_performsort"),
    (0x8000, "LogicalTapeWrite"),
    (0x9000, "RI_FKey_check_upd"),
    (0xa000, "ForkingPickler.dumps"),
    (0xb000, "Queue.get"),
    (0xc000, "btbuild"),
    (0xd000, "saveCommand"),
    (0xe000, "processCommand"),
    (0xf000, "standard_planner"),
    (0x10000, "InitPlan"),
    (0x11000, "_LazyLoader._load_for_state"),
    (0x12000, "Session.execute"),
    (0x13000, "mdb_cursor_get"),
    (0x14000, "test_filter"),
    (KERNEL, "ipt_do_table"),
];

/// What is to be done about a server that works for a client on these ways, the innermost function first, at one after the other.
fn advice(ways: &[&[u64]]) -> String {
    let mut s = Schedule::new(2, 1000.0);
    s.builder.meta_mut().sample_period_ns = MS;
    for (pid, name) in [(10, "client"), (20, "postgres")] {
        let name = s.builder.string(name);
        s.builder.push(0, NameEvent { pid, tid: pid, name });
    }
    s.builder.meta_mut().focus_pids = vec![10];
    s = s.switch(0.0, 0, 10, SwitchState::Sleeping, READ, 0).runs(20, 1, 1.0, 991.0, READ);
    for at in 0..990 {
        let way: Vec<u64> = ways[at % ways.len()].iter().chain(&[0x1000]).map(|f| f + 4).collect();
        let chain = s.builder.chain(20, &[], &way);
        s.builder.push(ns(1.5 + at as f64), SampleEvent { cpu: Cpu(1), tid: 20, ip: way[0], bp: 0, chain });
    }
    let trace = s.by(990.0, 1, 20, 10).runs(10, 0, 990.0, 999.0, READ).finish_with(&mut Namer(&NAMES));
    explained(&trace, None).findings[0].advice.clone()
}

#[test]
fn a_directory_without_an_index_is_read_entry_by_entry() {
    let said = advice(&[&[0x13000], &[0x14000]]);
    assert!(said.starts_with("100 % of it looks through the directory's entries: index"), "{said}");
    assert!(!advice(&[&[0x13000]]).contains("directory"), "another program's");
}

#[test]
fn what_is_done_with_each_row_is_of_reading_the_table() {
    let said = advice(&[&[0x5000, 0x4000], &[0x4000], &[0x4000], &[0x4000]]);
    assert!(said.starts_with("100 % of it reads whole tables: index"), "{said}");
    let said = advice(&[&[0x6000, 0x4000], &[0x4000], &[0x4000], &[0x4000]]);
    assert!(!said.contains("whole tables"), "an index is read: {said}");
}

#[test]
fn who_has_it_done_is_told_before_what_is_done() {
    let said = advice(&[&[0x5000, 0x4000, 0x3000, 0x2000]]);
    assert!(said.starts_with("100 % of it runs triggers, 100 % of it reads whole tables: index"), "{said}");
    let said = advice(&[&[0x3000]]);
    assert!(said.starts_with("100 % of it runs stored procedures: see what their own queries do."), "{said}");
    let said = advice(&[&[0x5000, 0x9000, 0x2000]]);
    assert!(said.starts_with("100 % of it looks for rows that refer to others (foreign keys): index"), "{said}");
}

#[test]
fn a_sort_that_finds_no_room_is_told_as_that() {
    let said = advice(&[&[0x7000]]);
    assert!(said.starts_with("100 % of it sorts: sort less"), "{said}");
    let said = advice(&[&[0x7000], &[0x8000, 0x7000]]);
    assert!(said.starts_with("100 % of it sorts, with files for what has no room in its memory: sort less"), "{said}");
}

#[test]
fn a_sort_for_an_index_is_the_indexs() {
    let said = advice(&[&[0x7000, 0xc000], &[0x8000, 0x7000, 0xc000]]);
    assert!(said.starts_with("100 % of it sorts for an index: let more workers build it"), "{said}");
}

#[test]
fn planning_and_opening_what_a_query_reads_are_one() {
    let said = advice(&[&[0xf000], &[0x10000], &[0x6000]]);
    assert!(said.starts_with("67 % of it plans queries, and opens what they read: prepare them once"), "{said}");
}

#[test]
fn a_command_that_stops_all_clients_is_told() {
    let said = advice(&[&[0xd000, 0xe000]]);
    assert!(said.contains("until it is done (SAVE, FLUSHALL): use its form in the background (BGSAVE"), "{said}");
}

#[test]
fn what_the_kernel_works_at_is_told_where_others_wait_for_it() {
    let said = advice(&[&[KERNEL]]);
    assert!(said.starts_with("Most of it goes through the rules of the packet filter (iptables, nftables)"), "{said}");
}

#[test]
fn what_carries_objects_is_both_sides() {
    let said = advice(&[&[0xa000], &[0xb000], &[0x7000]]);
    assert!(said.starts_with("67 % of it carries objects to other processes or threads"), "{said}");
}

#[test]
fn objects_that_are_read_one_at_a_time_are_told() {
    let said = advice(&[&[0x12000, 0x11000], &[0x11000], &[0x12000, 0x11000], &[0x12000]]);
    assert!(said.starts_with("75 % of it reads what objects refer to, one query for each"), "{said}");
    let said = advice(&[&[0x12000]]);
    assert!(!said.contains("one query for each"), "{said}");
}
