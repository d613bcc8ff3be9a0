//! A small fleet with a planted regression: what is asked of it, by this engine and by Spark; how it gets somewhere, and what is left
//! when that fails.

#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use common::{add, dataset, fleet, keys};
use holdup_fleet::{Chosen, Engine, Error, Place, Question, Significance, Wanted, changes};

fn engine(folder: &Path) -> Engine {
    let engine = Place::find(folder.to_str().unwrap()).and_then(Engine::open).unwrap();
    engine.choose(&Chosen::default()).unwrap();
    engine
}

#[test]
fn a_regression_is_found_with_its_day_and_nothing_else() {
    let folder = dataset(&fleet());
    let engine = engine(folder.path());
    let found = changes(&engine, &Chosen::default(), None).unwrap();
    assert_eq!(found.day.as_deref(), Some("2026-11-05"));
    let told: Vec<_> = found.changes.changes.iter().filter(|c| c.significance != Significance::Chance).collect();
    assert_eq!(told.iter().map(|c| c.function.as_str()).collect::<Vec<_>>(), ["bitmap_scan"]);
    assert_eq!((told[0].hosts, told[0].significance), (16, Significance::Rose));
    engine.choose(&Chosen::default()).unwrap();
    engine.want(&Wanted { function: "bitmap_scan".to_owned(), ..Wanted::default() }).unwrap();
    let examples = engine.ask(Question::Example).unwrap();
    assert!(!examples.rows.is_empty());
    for row in &examples.rows {
        assert!(examples.get(row, "date").text() >= "2026-11-05", "{row:?}");
        assert!(examples.get(row, "title").text().contains("lock"), "{row:?}");
    }
}

#[test]
fn what_is_kept_in_memory_answers_alike() {
    let folder = dataset(&fleet());
    let engine = engine(folder.path());
    let asked = |question: &Question| engine.ask(*question).unwrap();
    let before: Vec<_> = Question::REPORT.iter().map(asked).collect();
    assert!(before.iter().all(|rows| !rows.rows.is_empty()));
    engine.keep().unwrap();
    assert_eq!(Question::REPORT.iter().map(asked).collect::<Vec<_>>(), before);
}

#[test]
fn days_are_chosen() {
    let folder = dataset(&fleet());
    let engine = engine(folder.path());
    let chosen = Chosen { since: "2026-11-03".to_owned(), until: "2026-11-04".to_owned(), ..Chosen::default() };
    engine.choose(&chosen).unwrap();
    let days = ("2026-11-03".to_owned(), "2026-11-04".to_owned(), 32, 64);
    assert_eq!(engine.days().unwrap(), Some(days));
    engine.choose(&Chosen { since: "2027-01-01".to_owned(), ..Chosen::default() }).unwrap();
    assert_eq!(engine.days().unwrap(), None);
    assert!(engine.ask(Question::Causes).unwrap().rows.is_empty());
}

#[test]
fn a_trace_counts_once_and_only_when_it_is_complete() {
    let folder = dataset(&fleet());
    let before = engine(folder.path()).ask(Question::Causes).unwrap();
    let files = keys(folder.path());
    // Added again, it is the same: the same files with the same bytes.
    let content = |key: &String| fs::read(folder.path().join(key)).unwrap();
    let bytes: Vec<_> = files.iter().map(content).collect();
    add(&fleet(), folder.path());
    assert_eq!(keys(folder.path()), files);
    assert!(files.iter().map(content).eq(bytes));
    // A writer that was killed before the trace's own row: its other rows are in no answer.
    let last = files.iter().find(|key| key.starts_with("trace/")).unwrap();
    fs::remove_file(folder.path().join(last)).unwrap();
    let id = Path::new(last).file_stem().unwrap().to_str().unwrap();
    assert!(keys(folder.path()).iter().any(|key| key.starts_with("finding/") && key.contains(id)));
    let asked = engine(folder.path());
    assert_eq!(asked.days().unwrap().unwrap().3, 32 * 5 - 1);
    assert_ne!(asked.ask(Question::Causes).unwrap(), before);
    add(&fleet(), folder.path());
    assert_eq!(engine(folder.path()).ask(Question::Causes).unwrap(), before);
}

#[test]
fn what_is_no_data_set_gets_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str| match Place::find(name).and_then(Engine::open) {
        Err(Error::Input(what)) => what,
        other => panic!("{:?}", other.map(drop)),
    };
    let name = folder.path().to_str().unwrap();
    assert!(told(name).contains("no data set"), "{}", told(name));
    assert!(told("ftp://x/y").contains("s3://BUCKET/PATH"));
    assert!(told("/nonexistent/x").contains("/nonexistent/x"));
    fs::write(folder.path().join("holdup-dataset.json"), "{\"schema\":\"holdup.dataset/9\"}\n").unwrap();
    assert!(told(name).contains("newer holdup"), "{}", told(name));
}

#[test]
fn a_damaged_file_is_named() {
    let folder = dataset(&fleet());
    let file = keys(folder.path()).into_iter().find(|key| key.starts_with("finding/")).unwrap();
    let path = folder.path().join(&file);
    let whole = fs::read(&path).unwrap();
    // Cut, and with a page that is none.
    let scratched = [&whole[..4], &[0xff; 64], &whole[68..]].concat();
    for damaged in [&whole[..3], &whole[..whole.len() / 2], &whole[..whole.len() - 1], &scratched] {
        fs::write(&path, damaged).unwrap();
        let told = engine(folder.path()).ask(Question::Causes).unwrap_err().to_string();
        assert!(told.contains(&file), "{}: {told}", damaged.len());
    }
}
