//! Scripts without a server: what they compute, and what is said when they are wrong.

use std::path::PathBuf;
use std::rc::Rc;

use super::*;
use crate::session::Patience;

fn session() -> Rc<Session> {
    Rc::new(Session::new(None, Patience::default()))
}

/// A folder with a script in it.
struct Written {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn written(text: &str) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.rn");
    std::fs::write(&path, text).unwrap();
    Written { folder, path }
}

fn compiled(text: &str, params: &[(&str, &str)]) -> (Written, Result<Rc<dyn Script>, ScriptError>) {
    let written = written(text);
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let script = compile(&Source { params, ..Source::new(&written.path) }, &session());
    (written, script)
}

fn call(script: &dyn Script, function: &str, cycle: i64) -> Result<(), ScriptError> {
    let mut caller = script.caller(function)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
        .block_on(caller.call(cycle))
        .map_err(|error| *error)
}

/// Runs the body of a function that panics where what it computes is wrong.
fn run(body: &str) {
    let (_kept, script) = compiled(&format!("use latte::*;\npub async fn run(ctx, i) {{\n{body}\n}}"), &[]);
    call(&*script.unwrap(), "run", 7).unwrap();
}

#[test]
fn data_is_the_same_each_time_and_in_range() {
    run(r#"
        assert_eq!(hash(i), hash(7));
        assert_ne!(hash(i), hash(8));
        assert_ne!(hash2(1, 2), hash2(2, 1));
        for k in 0..1000 {
            assert!(hash(k) >= 0 && hash_range(k, 10) < 10 && hash_range(k, 10) >= 0);
            let x = uniform(k, 2.0, 3.0);
            assert!(x >= 2.0 && x < 3.0);
        }
        assert_eq!(text(i, 12).len(), 12);
        assert_eq!(text(i, 12), text(i, 12));
        assert_eq!(blob(i, 9).len(), 9);
        assert_eq!(hash_select(i, [10, 10]), 10);
        assert_eq!(vector(3, |k| k * 2), [0, 2, 4]);
        assert_eq!(join(["a", "b"], "-"), "a-b");
        assert_eq!(format!("{}", uuid(i)).len(), 36);
        assert!(now_timestamp() > 1_700_000_000);
        assert_eq!(normal(i, 125.0, 0.0).clamp(0.0, 100.0).to_i32(), Some(100));
    "#);
}

#[test]
fn vectors_are_of_their_distribution() {
    run(r#"
        let v = normal_vec(i, 20_000, 10.0, 2.0);
        assert_eq!(v.len(), 20_000);
        assert_eq!(v[0], normal(i, 10.0, 2.0));
        assert!(v[1] != v[0]);
        let sum = 0.0;
        let squares = 0.0;
        for x in v { sum += x; squares += (x - 10.0) * (x - 10.0); }
        // The error of a mean of 20,000 is 0.014, and that of the variance 0.04.
        assert!(sum / 20000.0 > 9.9 && sum / 20000.0 < 10.1);
        assert!(squares / 20000.0 > 3.8 && squares / 20000.0 < 4.2);
        let u = uniform_vec(i, 1_000, 2.0, 3.0);
        assert_eq!(u.len(), 1_000);
        for x in u { assert!(x >= 2.0 && x < 3.0); }
        assert_eq!(uniform_vec(i, 0, 2.0, 3.0).len(), 0);
        // 0.1 has no exact value, and another in four bytes.
        let x = normal_f32(i, 0.1, 0.0);
        assert!(x != 0.1 && x > 0.0999 && x < 0.1001);
        assert!(is_none(None) && !is_none(Some(1)) && !is_none(0));
    "#);
}

#[test]
fn numbers_spread_and_follow_their_distribution() {
    run(r#"
        let sum = 0.0;
        let low = 0;
        for k in 0..20_000 {
            sum += normal(k, 10.0, 2.0);
            if hash_range(k, 100) < 50 { low += 1; }
        }
        assert!(sum / 20000.0 > 9.9 && sum / 20000.0 < 10.1);
        assert!(low > 9_700 && low < 10_300);
    "#);
}

#[test]
fn parameters_come_from_the_command_line() {
    let text = r#"
        pub const ROWS = latte::param!("rows", 10);
        pub const NAME = latte::param!("name", "ada");
        pub async fn prepare(ctx) { ctx.load_cycle_count = ROWS; ctx.data.name = NAME; }
        pub async fn run(ctx, i) { assert_eq!(ctx.data.name, "grace"); }
    "#;
    let (_kept, script) = compiled(text, &[("rows", "2_500"), ("name", "grace")]);
    let script = script.unwrap();
    assert_eq!(script.load_count(), None);
    call(&*script, "prepare", 0).unwrap();
    call(&*script, "run", 0).unwrap();
    assert_eq!(script.load_count(), Some(2500));
    let params: Vec<_> = script.params().iter().map(|p| (p.name.as_str(), p.default.as_str())).collect();
    assert_eq!(params, [("rows", "10"), ("name", "\"ada\"")]);
    let functions: Vec<_> = script.functions().iter().map(|f| (f.name.as_str(), f.args)).collect();
    assert_eq!(functions, [("prepare", 1), ("run", 2)]);
}

#[test]
fn a_constant_can_say_how_much_to_load() {
    let (_kept, script) = compiled("pub const LOAD_COUNT = latte::param!(\"rows\", 5);\npub fn load(ctx, i) {}", &[]);
    assert_eq!(script.unwrap().load_count(), Some(5));
}

#[test]
fn modules_and_files_stand_beside_the_script() {
    let written = written("mod common;\nuse common::SIZE;\npub async fn run(ctx) { common::check(SIZE)?; }");
    let common = "pub const SIZE = 2;\npub fn check(n) { assert_eq!(fs::read_lines(\"tags.txt\")?.len(), n); Ok(()) }";
    std::fs::write(written.folder.path().join("common.rn"), common).unwrap();
    std::fs::write(written.folder.path().join("tags.txt"), "a\nb\n").unwrap();
    let source = Source::new(&written.path);
    let script = compile(&source, &session()).unwrap();
    call(&*script, "run", 0).unwrap();
    std::fs::remove_file(written.folder.path().join("tags.txt")).unwrap();
    let error = call(&*script, "run", 0).unwrap_err();
    assert!(error.message.contains("tags.txt"), "{error}");
    assert_eq!(error.place.unwrap().line, 3);
}

#[test]
fn a_library_beside_the_script_is_part_of_it() {
    let written = written("pub async fn run(ctx) { assert_eq!(double(SIZE), 14); }");
    let library = "const SIZE = latte::param!(\"size\", 3);\nconst LOAD_COUNT = 9;\n\
                   pub fn schema(ctx) {}\npub fn double(n) { n * 2 }";
    std::fs::write(written.folder.path().join("lib.rn"), library).unwrap();
    let params = vec![("size".to_owned(), "7".to_owned())];
    let script = compile(&Source { params, ..Source::new(&written.path) }, &session()).unwrap();
    call(&*script, "run", 0).unwrap();
    call(&*script, "schema", 0).unwrap();
    assert_eq!(script.load_count(), Some(9));
    // An error in it has its own place.
    std::fs::write(written.folder.path().join("lib.rn"), "const SIZE = 7;\npub fn double(n) { n * }").unwrap();
    let error = compile(&Source::new(&written.path), &session()).err().unwrap();
    let place = error.place.unwrap();
    assert!(place.file.ends_with("lib.rn") && place.line == 2, "{place:?}");
}

#[test]
fn a_library_taken_as_a_module_is_compiled_once() {
    let written = written("mod lib;\npub async fn run(ctx) { lib::run(ctx).await; }");
    std::fs::write(written.folder.path().join("lib.rn"), "pub async fn run(ctx) {}").unwrap();
    let script = compile(&Source::new(&written.path), &session()).unwrap();
    call(&*script, "run", 0).unwrap();
}

#[test]
fn a_wrong_script_is_told_with_its_line() {
    let error = |text: &str| compiled(text, &[]).1.err().expect("should not compile");
    let syntax = error("pub async fn run(ctx, i) {\n    let x = ;\n}");
    assert_eq!(syntax.place.as_ref().map(|p| (p.line, p.column)), Some((2, 13)), "{syntax}");
    let unknown = error("pub fn run(ctx) {\n    nothing(1)\n}");
    assert_eq!(unknown.place.as_ref().map(|p| p.line), Some(2), "{unknown}");
    let missing = compile(&Source::new("/no/such.rn"), &session()).err().unwrap();
    assert!(missing.message.contains("/no/such.rn"), "{missing}");
}

#[test]
fn a_failing_call_is_told_with_its_line() {
    let text = "pub async fn run(ctx, i) {\n    let a = 1;\n    ctx.execute(`SELECT 1`).await?;\n}\n\
                pub fn stop(ctx) {\n    panic!(\"enough\");\n}\npub fn three(a, b, c) {}\n\
                pub async fn wrong(ctx) {\n    ctx.exec(latte::hash(1).to_string()).await?;\n}";
    let (_kept, script) = compiled(text, &[]);
    let script = script.unwrap();
    let error = call(&*script, "run", 0).unwrap_err();
    assert_eq!(error.place.as_ref().map(|p| p.line), Some(3), "{error}");
    assert!(error.message.contains("no server") && !error.is_transient);
    let error = call(&*script, "wrong", 0).unwrap_err();
    assert_eq!(error.place.as_ref().map(|p| p.line), Some(10), "{error}");
    assert!(error.message.contains("no method `exec` for `::latte::Context`"), "{error}");
    let error = call(&*script, "stop", 0).unwrap_err();
    assert_eq!(error.place.as_ref().map(|p| p.line), Some(6), "{error}");
    assert!(error.message.contains("enough"), "{error}");
    assert!(script.caller("walk").err().unwrap().message.contains("`walk`, but run, stop, three, wrong"));
    assert!(script.caller("three").err().unwrap().message.contains("takes 3 arguments"));
}

#[test]
fn a_binary_file_is_read_at_any_place() {
    let text = r#"
        use latte::*;
        pub async fn prepare_worker(ctx) { ctx.data.file = fs::open_binary("rows.bin")?; }
        pub async fn run(ctx, i) {
            let f = ctx.data.file;
            f.seek(0)?;
            assert_eq!(f.len(), 48);
            assert_eq!(f.read_u32(fs::LE)?, 4294967295);
            assert_eq!(f.read_i32("be")?, -2);
            assert_eq!(f.read_i64(fs::BE)?, -3);
            assert_eq!(f.read_f32(fs::LE)?, 0.5);
            assert_eq!(f.read_f64(fs::BE)?, -0.25);
            assert_eq!(f.read_bytes(4)?, b"abcd");
            assert_eq!(f.read_u32_vec(fs::BE, 2)?, [1, 2]);
            assert_eq!(f.read_f32_vec(fs::LE, 2)?, [1.5, 2.5]);
            assert!(f.read_bytes(1).is_err() && f.read_bytes(0)?.len() == 0);
            f.seek_relative(-8)?;
            assert_eq!(f.read_f32_vec(fs::LE, 2)?, [1.5, 2.5]);
            f.seek(40)?;
            assert_eq!(f.read_f32(fs::LE)?, 1.5);
            // Beyond its end nothing is read, and nothing held for it.
            f.seek(1000)?;
            match f.read_f64_vec(fs::LE, 1152921504606846976) {
                Err(why) => assert!(`${why}`.contains("rows.bin: it ends at byte 48"), "{}", why),
                Ok(_) => panic!("read beyond its end"),
            }
            assert!(f.seek(-1).is_err() && f.seek_relative(-1001).is_err() && f.seek_relative(1).is_err());
            assert!(f.read_u32("middle").is_err() && f.read_i64_vec("LE", 1).is_err());
            assert!(f.seek(9223372036854775807).is_err(), "no file is as long");
            f.seek(32)?;
            assert_eq!(f.read_i32_vec(fs::BE, 2)?, [1, 2]);
            f.seek(8)?;
            assert_eq!(f.read_i64_vec(fs::BE, 1)?, [-3]);
            f.seek(20)?;
            assert_eq!(f.read_f64_vec("Be", 1)?, [-0.25]);
        }
    "#;
    let written = written(text);
    let bytes: [&[u8]; 9] = [
        &u32::MAX.to_le_bytes(),
        &(-2_i32).to_be_bytes(),
        &(-3_i64).to_be_bytes(),
        &0.5_f32.to_le_bytes(),
        &(-0.25_f64).to_be_bytes(),
        b"abcd",
        &(1_u64 << 32 | 2).to_be_bytes(),
        &1.5_f32.to_le_bytes(),
        &2.5_f32.to_le_bytes(),
    ];
    std::fs::write(written.folder.path().join("rows.bin"), bytes.concat()).unwrap();
    let script = compile(&Source::new(&written.path), &session()).unwrap();
    call(&*script, "prepare_worker", 0).unwrap();
    (0..3).for_each(|cycle| call(&*script, "run", cycle).unwrap());
}
