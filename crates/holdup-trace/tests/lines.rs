//! Source lines of the kept code, and files from before there were any.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use holdup_trace::*;

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        vec![Location { function: "spin".into(), module: "/bin/x".into(), offset: address & 15, ..Location::default() }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], address: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((address & !15, vec![0x90; 16]))
    }

    fn lines(&mut self, _: &[Arc<Image>], _: u64, length: usize) -> Vec<SourceLine> {
        let line = |offset: u32, line| SourceLine { offset, file: "x.c".into(), line, ..SourceLine::default() };
        vec![line(0, 3), line(length as u32 / 2, 4)]
    }
}

/// Two processes that run the same program, at different addresses.
fn trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    b.meta_mut().cpus = 1;
    for pid in [10, 11u32] {
        let start = u64::from(pid) << 12;
        let image = Image { start, end: start + 4096, path: "/bin/x".into(), pid, ..Image::default() };
        let image = b.image(image);
        b.push(1, MapEvent { pid, image });
        let name = b.string("x");
        b.push(1, NameEvent { pid, tid: pid, name });
        let chain = b.chain(pid, &[], &[start + 5]);
        b.push(u64::from(pid), SampleEvent { cpu: Cpu(0), tid: pid, ip: start + 5, bp: 0, chain });
    }
    b.finish(Some(&mut Namer)).expect("trace")
}

fn lines(trace: &Trace) -> Vec<(u32, String, u32)> {
    let code = trace.names.code(|c| trace.text(c.function) == "spin").expect("its code is kept");
    trace.names.lines(&code).map(|l| (l.offset, trace.text(l.file).to_owned(), l.line)).collect()
}

#[test]
fn a_program_that_runs_twice_has_its_lines_once() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    file::write(&trace(), &path).expect("write");
    let found = lines(&file::read(&path).expect("read"));
    assert_eq!(found, [(0, "x.c".to_owned(), 3), (8, "x.c".to_owned(), 4)]);
}

/// Copies a file without one of its members; `unlisted` is a table that the copy's list of tables does not know.
fn without(from: &Path, to: &Path, left_out: &str, unlisted: Option<&str>) {
    let mut zip = zip::ZipArchive::new(File::open(from).expect("open")).expect("a zip");
    let mut copy = zip::ZipWriter::new(File::create(to).expect("create"));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for i in 0..zip.len() {
        let mut member = zip.by_index(i).expect("member");
        let name = member.name().expect("name").into_owned();
        if name != left_out {
            let mut data = Vec::new();
            member.read_to_end(&mut data).expect("read");
            if let (Some(table), "meta.json") = (unlisted, name.as_str()) {
                let text = String::from_utf8(data).expect("text");
                let listed = |line: &&str| line.trim_start().starts_with(&format!("\"{table}\":"));
                assert_eq!(text.lines().filter(listed).count(), 1, "{text}");
                data = text.lines().filter(|line| !listed(line)).collect::<Vec<_>>().join("\n").into_bytes();
            }
            copy.start_file(name, options).expect("start");
            copy.write_all(&data).expect("write");
        }
    }
    copy.finish().expect("finish");
}

#[test]
fn files_without_lines_open() {
    let dir = tempfile::tempdir().expect("dir");
    let (new, old, broken) = (dir.path().join("new"), dir.path().join("old"), dir.path().join("broken"));
    file::write(&trace(), &new).expect("write");
    without(&new, &old, "line.arrow", None);
    assert_eq!(lines(&file::read(&old).expect("read")), []);
    without(&new, &broken, "code.arrow", None);
    let error = file::read(&broken).expect_err("incomplete").to_string();
    assert!(error.contains("code.arrow"), "{error}");
}

#[test]
fn a_file_from_before_a_table_has_no_rows_of_it() {
    let dir = tempfile::tempdir().expect("dir");
    let (new, old, broken) = (dir.path().join("new"), dir.path().join("old"), dir.path().join("broken"));
    file::write(&trace(), &new).expect("write");
    without(&new, &old, "block_io.arrow", Some("block_io"));
    let trace = file::read(&old).expect("read");
    assert_eq!((trace.block_ios.rows(), trace.block_ios.iter().count(), trace.samples.rows()), (0, 0, 2));
    without(&new, &broken, "block_io.arrow", None);
    let error = file::read(&broken).expect_err("its list has the table").to_string();
    assert!(error.contains("block_io.arrow"), "{error}");
}
