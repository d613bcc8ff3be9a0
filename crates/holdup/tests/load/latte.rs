//! What Latte has, by its names.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{count, err, json, load, run, written};

#[test]
fn each_function_of_a_mix_has_its_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(
        folder.path(),
        "pub async fn fast(ctx, i) {}\npub async fn slow(ctx, i) { let x = 0; while x < 2000 { x += 1; } }",
    );
    let reports = folder.path().join("reports");
    fs::create_dir(&reports).expect("a folder");
    let place = reports.display().to_string();
    let o = run(&[
        "run",
        &script,
        "-t",
        "2",
        "-d",
        "20001",
        "-w",
        "10",
        "-f",
        "fast:3,slow:1",
        "--tag",
        "a,b",
        "-o",
        &place,
        "--json",
    ]);
    let answer = json(&o);
    assert_eq!((answer["tags"][1].as_str(), answer["functions"][1]["name"].as_str()), (Some("b"), Some("slow")));
    let [fast, slow] = [0, 1].map(|i| &answer["functions"][i]);
    assert_eq!(count(fast, "cycles") + count(slow, "cycles"), 20_001);
    assert!(count(fast, "cycles") > 14_000 && count(slow, "cycles") > 4_000);
    let median = |of: &Value| of["service_ms"]["p50"].as_f64().expect("a median");
    assert!(median(slow) > 2.0 * median(fast), "{slow} {fast}");
    let percents = answer["percentiles"].as_array().expect("percentiles");
    let times: Vec<f64> = percents.iter().map(|p| p["response_ms"].as_f64().expect("a time")).collect();
    assert!(times.len() == 9 && times.is_sorted(), "{times:?}");
    // Two threads, one call each: more can't be under way.
    assert!(answer["mean_concurrency"].as_f64().is_some_and(|n| n > 0.1 && n < 2.01), "{}", answer["mean_concurrency"]);

    let made: Vec<_> = fs::read_dir(&reports).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    let name = made[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(made.len() == 1 && name.starts_with("work.fast+slow.") && name.ends_with(".json"), "{made:?}");
    let log = folder.path().join("saved.hlog");
    let saved = made[0].display().to_string();
    let o = run(&["show", &saved, "--hdr-log", &log.display().to_string(), "-b", &saved]);
    assert!(String::from_utf8_lossy(&o.stdout).contains("no sure difference"), "{}", err(&o));
    let text = fs::read_to_string(log).expect("a log");
    assert_eq!(text.lines().filter(|line| line.starts_with("Tag=response,")).count(), 1);
}

#[test]
fn cycles_are_numbered_from_the_first_to_the_last_and_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(
        folder.path(),
        "pub async fn run(ctx, i) { if i < 100 || i >= 110 { ctx.signal_failure(`outside: ${i}`).await?; } }",
    );
    let base = ["run", &script, "-t", "2", "-d", "1001", "-w", "0", "--json"];
    let part = json(&run(&[base.as_slice(), &["--start-cycle", "100", "--end-cycle", "110"]].concat()));
    assert_eq!((count(&part, "cycles"), count(&part, "errors")), (1001, 0));
    let o = run(&[base.as_slice(), &["--start-cycle", "100"]].concat());
    assert!(o.status.code() == Some(1) && json(&o)["cut"].as_str().is_some_and(|cut| cut.contains("outside: 11")));
    let o = run(&[base.as_slice(), &["--start-cycle", "9", "--end-cycle", "9"]].concat());
    assert!(o.status.code() == Some(2) && err(&o).contains("--end-cycle 9"), "{}", err(&o));
}

#[test]
fn a_workload_is_found_on_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    written(folder.path(), "pub async fn run(ctx, i) {}");
    let list = |path: &Path| load(&["list", "work.rn"]).env("HOLDUP_WORKLOAD_PATH", path).output().expect("it starts");
    assert!(list(folder.path()).status.success());
    assert_eq!(list(Path::new("/nonexistent")).status.code(), Some(3));
}

/// What scripts of the fork for ScyllaDB use besides.
pub fn validations_and_batches(address: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(
        folder.path(),
        r#"
        pub async fn schema(ctx) {
            ctx.execute("CREATE TABLE IF NOT EXISTS holdup.pairs (k bigint, c bigint, v vector<float, 3>, PRIMARY KEY (k, c))").await?;
        }
        pub async fn prepare(ctx) {
            ctx.prepare("put", "INSERT INTO holdup.pairs (k, c, v) VALUES (?, ?, ?)").await?;
            ctx.prepare("get", "SELECT c FROM holdup.pairs WHERE k = ?").await?;
            if ctx.get_datacenters().await? != ["datacenter1"] { ctx.signal_failure("other datacenters").await?; }
        }
        pub async fn run(ctx, i) {
            let v = latte::normal_vec(i, 3, 0.0, 1.0);
            ctx.batch_prepared(["put", "put"], [[i, 1, v], [i, 2, v]]).await?;
            ctx.execute_prepared_with_validation("get", [i], [2]).await?;
            ctx.execute_prepared_with_validation("get", [i], [1, 2, "one or two"]).await?;
        }
        pub async fn wrong(ctx, i) { ctx.execute_prepared_with_validation("get", [i], [7, "seven"]).await?; }
        "#,
    );
    let o = run(&["schema", &script, address, "--timeout", "60s"]);
    assert!(o.status.success(), "{}", err(&o));
    let base = ["run", &script, address, "-p", "4", "-d", "100", "-w", "0", "--datacenter", "datacenter1", "--json"];
    let answer = json(&run(&base));
    assert_eq!(
        (count(&answer, "cycles"), count(&answer, "rows"), count(&answer, "errors")),
        (100, 400, 0),
        "{answer:#}"
    );
    assert_eq!(answer["requests_per_call"].as_f64(), Some(3.0));
    let o = run(&[base.as_slice(), &["-f", "wrong", "--retry-pause", "1ms"]].concat());
    assert_eq!(o.status.code(), Some(1));
    assert!(
        json(&o)["cut"].as_str().is_some_and(|cut| cut.contains("2 rows came, and 7 were expected: seven")),
        "{}",
        err(&o)
    );
}
