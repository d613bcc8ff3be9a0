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
    let slices = answer["series"].as_array().expect("a series").len();
    assert_eq!(text.lines().filter(|line| line.starts_with("Tag=response,")).count(), slices);
}

#[test]
fn several_reports_are_drawn_into_one_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(folder.path(), "pub async fn run(ctx, i) {}");
    let [a, b, picture, png, other] =
        ["a.json", "b.json", "p.svg", "p.png", "old.json"].map(|name| folder.path().join(name).display().to_string());
    for to in [&a, &b] {
        assert!(run(&["run", &script, "-d", "300ms", "-w", "0", "-o", to]).status.success());
    }
    let panels = |path: &str| {
        let svg = fs::read_to_string(path).expect("a picture");
        ["calls per second", "p50, ms", "p99, ms", "p99.9, ms"].map(|name| svg.contains(name))
    };
    for (chosen, drawn) in [
        (&[][..], [true, true, true, false]),
        (&["-t"], [true, false, false, false]),
        (&["-p", "50,99.9"], [false, true, false, true]),
        (&["-p", "99", "-t"], [true, false, true, false]),
    ] {
        let o = run(&[&["plot", &a, &b, "-o", &picture][..], chosen].concat());
        assert!(o.status.success(), "{}", err(&o));
        assert_eq!(panels(&picture), drawn, "{chosen:?}");
        let svg = fs::read_to_string(&picture).expect("a picture");
        assert!(svg.contains("a.json") && svg.contains("b.json"));
    }
    assert!(run(&["plot", &a, "-p", "25", "-o", &png]).status.success());
    assert!(fs::read(&png).expect("a picture").starts_with(b"\x89PNG"));
    // One of an earlier version knows three percentiles of its slices.
    let mut report: Value = serde_json::from_str(&fs::read_to_string(&a).expect("a report")).expect("JSON");
    for slice in report["series"].as_array_mut().expect("a series") {
        slice.as_object_mut().expect("a slice").remove("hdr");
    }
    fs::write(&other, report.to_string()).expect("written");
    assert!(run(&["plot", &a, &other, "-p", "99,100", "-o", &picture]).status.success());
    let o = run(&["plot", &a, &other, "-p", "90", "-o", &picture]);
    assert!(o.status.code() == Some(3) && err(&o).contains("old.json: of its slices it keeps p50"), "{}", err(&o));
    assert_eq!(run(&["plot", &a, "-p", "101", "-o", &picture]).status.code(), Some(2));
}

#[test]
fn a_script_has_metrics_and_fields_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rows.csv"), "1; one;x\n2;;y\n").expect("written");
    let text = r#"
        pub async fn prepare(ctx) {
            ctx.set_report_field("data", "rows.csv");
            ctx.init_partition_row_distribution_preset("main", 1000, 10, "80:1,20:4").await?;
            if ctx.set_partition_batch_size("main", 7).await? != 176 { ctx.signal_failure("batches").await?; }
            let lines = fs::read_split_lines_iter("rows.csv", [";", -1, true, true])?;
            ctx.data.rows = [];
            while let Some(parts) = lines.next() { ctx.data.rows.push(parts?); }
            if ctx.data.rows != [["1", "one", "x"], ["2", "y"]] { ctx.signal_failure("rows").await?; }
            ctx.declare_metric("rows", "higher");
            if ctx.data.functions_to_invoke[0].1 != 1.0 { ctx.signal_failure("functions").await?; }
        }
        pub async fn prepare_worker(ctx) { ctx.data.offset = 1000 * ctx.worker_id / ctx.worker_count; }
        pub async fn run(ctx, i) {
            let partition = ctx.get_partition_info("main", i).await;
            ctx.record_metric("rows", partition.rows_num);
            ctx.record_metric("offset", ctx.data.offset);
            partition.idx += 5;
            if partition.idx != ctx.get_partition_idx("main", i).await + 5 { ctx.signal_failure("idx").await?; }
            let batch = ctx.get_partition_batch("main", i).await?;
            for row in batch.rows {
                if ctx.get_partition_idx("main", row).await != batch.idx { ctx.signal_failure("batch").await?; }
            }
        }
        pub async fn late(ctx, i) { ctx.set_report_field("a", "b"); }
        pub async fn later(ctx, i) { ctx.declare_metric("a", "lower"); }
        pub async fn word(ctx, i) { ctx.record_metric("a", "b"); }
        pub async fn none(ctx, i) { ctx.get_partition_idx("other", i).await; }
    "#;
    let script = written(folder.path(), text);
    let report = folder.path().join("r.json").display().to_string();
    let base = ["run", &script, "-t", "2", "-d", "1000", "-w", "100"];
    let o = run(&[&base[..], &["-o", &report, "--json"]].concat());
    let answer = json(&o);
    assert!(o.status.success(), "{answer:#} {}", err(&o));
    assert_eq!(answer["fields"]["data"].as_str(), Some("rows.csv"));
    let better = |name: &str| answer["metrics"].as_array()?.iter().find(|m| m["name"] == name)?["better"].as_str();
    assert_eq!((better("rows"), better("offset")), (Some("higher"), None));
    assert_eq!(answer["fields"]["partitions of main"].as_str(), Some("52 of 10 rows, 12 of 40 rows"));
    let [offset, rows] = [0, 1].map(|i| &answer["metrics"][i]);
    assert_eq!(
        (offset["name"].as_str(), offset["min"].as_f64(), offset["max"].as_f64()),
        (Some("offset"), Some(0.0), Some(500.0))
    );
    // Those of the warm-up are left out, and each row was seen once: Σ rows² / rows.
    assert_eq!((count(rows, "count"), rows["mean"].as_f64()), (1000, Some(24.4)));
    assert_eq!((rows["p50"].as_f64(), rows["p90"].as_f64()), (Some(10.0), Some(40.0)));
    let shown = String::from_utf8_lossy(&run(&["show", &report]).stdout).into_owned();
    assert!(
        shown.contains("data: rows.csv") && shown.contains("metric") && shown.contains("higher is better"),
        "{shown}"
    );
    for (function, words) in [
        ("late", "set in `prepare`"),
        ("later", "is said in `prepare`"),
        ("word", "\"a\" is a number"),
        ("none", "no preset \"other\""),
    ] {
        let o = run(&[&base[..], &["-f", function, "--json"]].concat());
        assert!(
            o.status.code() == Some(1) && json(&o)["cut"].as_str().is_some_and(|cut| cut.contains(words)),
            "{}",
            err(&o)
        );
    }
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
            ctx.execute("CREATE TABLE IF NOT EXISTS holdup.kinds (k bigint PRIMARY KEY, d duration, m map<text, bigint>, u uuid, v vector<float, 3>)").await?;
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
        pub async fn values(ctx, i) {
            // One row comes: it is the number in it that should be 2.
            ctx.execute_with_validation(`SELECT COUNT(*) FROM holdup.pairs WHERE k = ${i}`, [2]).await?;
            let map = [("a", 1), ("b", i)];
            map.sort();
            let floats = fs::open_binary("floats.bin")?.read_bytes(12)?;
            ctx.prepare("any", "INSERT INTO holdup.kinds (k, d, m, u, v) VALUES (?, ?, ?, ?, ?)").await?;
            ctx.execute_prepared("any", [i, "1mo2d3h", map, latte::uuid(i), floats]).await?;
            let rows = ctx.execute_with_result(`SELECT d, m, u, v FROM holdup.kinds WHERE k = ${i}`).await?;
            let row = rows[0];
            assert_eq!(row.d, "1mo2d10800000000000ns");
            assert!(row.m == map, "{}", row.m);
            assert_eq!(row.u, `${latte::uuid(i)}`);
            assert_eq!(row.v, [0.5, -1.0, 2.0]);
        }
        pub async fn wrong(ctx, i) { ctx.execute_prepared_with_validation("get", [i], [7, "seven"]).await?; }
        "#,
    );
    let floats = [0.5_f32, -1.0, 2.0].map(f32::to_le_bytes).concat();
    fs::write(folder.path().join("floats.bin"), floats).expect("written");
    let o = run(&["schema", &script, address, "--timeout", "60s"]);
    assert!(o.status.success(), "{}", err(&o));
    let o = run(&["load", &script, address]);
    assert!(o.status.success() && err(&o).contains("load: nothing to do"), "{}", err(&o));
    let base = ["run", &script, address, "-p", "4", "-d", "100", "-w", "0", "--datacenter", "datacenter1", "--json"];
    let answer = json(&run(&base));
    assert_eq!(
        (count(&answer, "cycles"), count(&answer, "rows"), count(&answer, "errors")),
        (100, 400, 0),
        "{answer:#}"
    );
    assert_eq!(answer["requests_per_call"].as_f64(), Some(3.0));
    let answer = json(&run(&[base.as_slice(), &["-f", "values"]].concat()));
    assert_eq!((count(&answer, "cycles"), count(&answer, "errors")), (100, 0), "{answer:#}");
    let o = run(&[base.as_slice(), &["-f", "wrong", "--retry-pause", "1ms"]].concat());
    assert_eq!(o.status.code(), Some(1));
    assert!(
        json(&o)["cut"].as_str().is_some_and(|cut| cut.contains("2 rows came, and 7 were expected: seven")),
        "{}",
        err(&o)
    );
}
