//! The same questions to Apache Spark, on a cluster of two workers on this machine: the same rows.

#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use common::{dataset, fleet, python, python_has};
use holdup_fleet::{Chosen, Engine, Place, Question, Rows};
use holdup_testing::{Need, has};
use serde_json::Value;

/// Two workers with a core each, and a driver.
const CLUSTER: &str = "--master local-cluster[2,1,1024] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=4 pyspark-shell";

#[test]
fn spark_gives_the_same_rows() {
    if !has(Need::Other { name: "Python with pyspark", is_here: python_has("pyspark") }) || !has(Need::Java) {
        return;
    }
    let folder = dataset(&fleet());
    let chosen = Chosen { since: "2026-11-03".to_owned(), cut: "2026-11-05".to_owned(), ..Chosen::default() };
    let engine = Place::find(folder.path().to_str().unwrap()).and_then(Engine::open).unwrap();
    engine.choose(&chosen).unwrap();
    engine.want(&holdup_fleet::Wanted::default()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/spark/fleet.py");
    let output = Command::new(python())
        .arg(script)
        .arg(folder.path())
        .args(Question::ALL.iter().map(|q| q.name()))
        .args(["--since", &chosen.since, "--cut", &chosen.cut])
        .env("PYSPARK_SUBMIT_ARGS", CLUSTER)
        .env("PYSPARK_PYTHON", python())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let spark: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    for question in Question::ALL {
        let ours: Rows = engine.ask(*question).unwrap();
        assert!(!ours.rows.is_empty(), "{question}");
        assert_eq!(serde_json::to_value(&ours).unwrap(), spark[question.name()], "{question}");
    }
}
