//! Names from servers on the loopback device: what is fetched, kept and refused.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::server::{Handler, Server, not_found, say, with_length};
use common::{BASE, compile, flat_image, symbol, tool};
use holdup_symbols::{Kernel, Sources, Symbols};
use holdup_trace::{Image, PdbId, Symbolizer, decode_build_id};

fn pdb() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fixture.pdb.gz");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

const PDB_PATH: &str = "/fixture.pdb/CFB7724316B482EF4C4C44205044422E1/fixture.pdb";

fn pdb_image() -> Vec<Arc<Image>> {
    let guid = 0xcfb7_7243_16b4_82ef_4c4c_4420_5044_422e_u128.to_be_bytes();
    let build_id = PdbId { guid, age: 1, name: "fixture.pdb".into() }.to_build_id();
    let path = r"C:\work\fixture.exe".into();
    vec![Arc::new(Image { start: BASE, end: BASE + 0x6000, path, build_id, pid: 1, ..Image::default() })]
}

/// The name of one function of the image of Windows, and the notes.
fn name(sources: &Sources) -> (String, Vec<String>) {
    let mut symbols = Symbols::new(Kernel::None).of_another_machine().with(sources);
    let name = symbols.locate(false, &pdb_image(), BASE + 0x1110)[0].function.clone();
    (name, symbols.notes().into_iter().map(|note| note.text).collect())
}

fn sources(server: &Server, cache: &Path) -> Sources {
    Sources::new(Some(&server.url), None, None).cached_in(cache)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
        if entry.path().is_dir() { found.extend(files(&entry.path())) } else { found.push(entry.path()) }
    }
    found
}

#[test]
fn a_pdb_is_fetched_once_and_kept_for_its_owner() {
    let server =
        Server::start(Box::new(
            |path, stream| if path == PDB_PATH { with_length(stream, &pdb()) } else { not_found(stream) },
        ));
    let cache = tempfile::tempdir().unwrap();
    let (found, notes) = name(&sources(&server, cache.path()));
    assert_eq!(found, "plain_function", "{notes:?}");
    assert_eq!(server.asked(), [PDB_PATH]);
    assert_eq!(notes, [format!("{} gave one file with names, 72 KiB", server.url)]);
    let kept = cache.path().join(&PDB_PATH[1..]);
    assert_eq!(files(cache.path()), std::slice::from_ref(&kept));
    assert_eq!(std::fs::read(&kept).unwrap(), pdb());
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&kept).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    // The folder is a symbol store of its own.
    assert_eq!(name(&sources(&server, cache.path())), ("plain_function".into(), vec![]));
    assert_eq!(name(&Sources::new(None, cache.path().to_str(), None)), ("plain_function".into(), vec![]));
    assert_eq!(server.asked(), [""; 0]);
}

#[test]
fn servers_of_the_environment_are_not_asked() {
    let server = Server::start(Box::new(|_, stream| with_length(stream, &pdb())));
    let cache = tempfile::tempdir().unwrap();
    let path = format!("srv*{}*{}", cache.path().display(), server.url);
    let (found, notes) = name(&Sources::new(None, Some(&path), None).cached_in(cache.path()));
    assert_eq!((found.as_str(), server.asked().len()), ("fixture.exe+0x1110", 0));
    assert!(notes[0].contains("is not asked") && notes[0].contains(&format!("--symbols {}", server.url)), "{notes:?}");
    // On the command line the same is an order, and says where the file goes.
    let (found, _) = name(&Sources::new(Some(&path), None, None).cached_in(Path::new("/nowhere")));
    assert_eq!((found.as_str(), server.asked().len()), ("plain_function", 1));
    assert!(cache.path().join(&PDB_PATH[1..]).is_file());
}

#[test]
fn what_a_server_lacks_is_not_asked_for_again_at_once() {
    let server = Server::start(Box::new(|_, stream| not_found(stream)));
    let cache = tempfile::tempdir().unwrap();
    for asked in [vec![PDB_PATH.to_owned(), PDB_PATH.replace("E1/fixture.pdb", "E1/fixture.pd_")], vec![]] {
        assert_eq!(name(&sources(&server, cache.path())), ("fixture.exe+0x1110".into(), vec![]));
        assert_eq!(server.asked(), asked);
    }
}

#[test]
fn packed_pdbs_are_told() {
    let server =
        Server::start(Box::new(
            |path, stream| if path.ends_with(".pd_") { with_length(stream, b"MSCF") } else { not_found(stream) },
        ));
    let cache = tempfile::tempdir().unwrap();
    let (_, notes) = name(&sources(&server, cache.path()));
    assert!(notes.len() == 1 && notes[0].contains("fixture.pd_") && notes[0].contains("is compressed"), "{notes:?}");
}

#[test]
fn parts_redirections_and_bodies_without_a_length_are_read() {
    let cases: [(&str, Handler); 4] = [
        (
            "chunked",
            Box::new(|_, stream| {
                let mut body = Vec::new();
                for (i, part) in pdb().chunks(5000).enumerate() {
                    let extension = if i % 2 == 0 { ";x=y" } else { "" };
                    body.extend(
                        format!("{:x}{extension}\r\n", part.len()).bytes().chain(part.iter().copied()).chain(*b"\r\n"),
                    );
                }
                body.extend(*b"0\r\n\r\n");
                say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", &body);
            }),
        ),
        ("to the end", Box::new(|_, stream| say(stream, "HTTP/1.0 200 OK", &pdb()))),
        (
            "redirected",
            Box::new(|path, stream| match path {
                PDB_PATH => say(stream, "HTTP/1.1 302 Found\r\nLocation: /else/where?x", b""),
                "/else/where?x" => say(stream, "HTTP/1.1 307 Moved\r\nlocation: there", b""),
                "/else/there" => with_length(stream, &pdb()),
                _ => not_found(stream),
            }),
        ),
        (
            "in small pieces",
            Box::new(|_, stream| {
                let body = pdb();
                let _ = stream.set_nodelay(true);
                for piece in format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes().chunks(7) {
                    let _ = stream.write_all(piece);
                }
                body.chunks(997).for_each(|piece| _ = stream.write_all(piece));
            }),
        ),
    ];
    for (what, handler) in cases {
        let server = Server::start(handler);
        let cache = tempfile::tempdir().unwrap();
        let (found, notes) = name(&sources(&server, cache.path()));
        assert_eq!(found, "plain_function", "{what}: {notes:?}");
    }
}

/// Nothing of these is kept, and each is told in one sentence.
#[test]
fn hostile_servers_are_refused() {
    let endless = |stream: &mut TcpStream| while stream.write_all(&[b'1'; 1 << 16]).is_ok() {};
    let cases: [(&str, &str, Handler); 15] = [
        (
            "another build",
            "of another build",
            Box::new(|_, stream| {
                let mut other = pdb();
                // The GUID as the file has it: its first three parts are little-endian.
                let guid = 0x4372_b7cf_b416_ef82_u64.to_be_bytes();
                let at = other.windows(8).position(|w| w == guid).unwrap();
                other[at] ^= 1;
                with_length(stream, &other);
            }),
        ),
        (
            "no PDB",
            "is not a PDB",
            Box::new(|_, stream| {
                with_length(stream, b"<html>Please log in to this network</html> and so on, for at least 64 bytes");
            }),
        ),
        ("empty", "what the server gave", Box::new(|_, stream| with_length(stream, b""))),
        (
            "claims too much",
            "has more than the",
            Box::new(|_, stream| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999", b"x")),
        ),
        (
            "a length that is none",
            "says that the length is",
            Box::new(|_, stream| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: -1", b"x")),
        ),
        (
            "ends early",
            "ended too early",
            Box::new(|_, stream| say(stream, "HTTP/1.1 200 OK\r\nContent-Length: 5000", b"x")),
        ),
        (
            "part ends early",
            "ended too early",
            Box::new(|_, stream| say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"ff\r\nx")),
        ),
        (
            "part without length",
            "has no length",
            Box::new(|_, stream| say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"zz\r\nx")),
        ),
        (
            "endless length of a part",
            "has no length",
            Box::new(move |_, stream| {
                say(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", b"");
                endless(stream);
            }),
        ),
        (
            "endless head",
            "does not answer with HTTP",
            Box::new(move |_, stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
                endless(stream);
            }),
        ),
        (
            "no HTTP",
            "does not answer with HTTP",
            Box::new(|_, stream| _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ),
        (
            "circle",
            "more than 5 times",
            Box::new(|path, stream| say(stream, &format!("HTTP/1.1 302 Found\r\nLocation: {path}x"), b"")),
        ),
        (
            "other scheme",
            "only http and https",
            Box::new(|_, stream| say(stream, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd", b"")),
        ),
        (
            "packed",
            "packs the answer",
            Box::new(|_, stream| {
                say(stream, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3", b"\x1f\x8b\x08");
            }),
        ),
        ("broken", "status 503", Box::new(|_, stream| say(stream, "HTTP/1.1 503 Busy", b""))),
    ];
    for (what, expected, handler) in cases {
        let server = Server::start(handler);
        let cache = tempfile::tempdir().unwrap();
        let (found, notes) = name(&sources(&server, cache.path()));
        assert_eq!(found, "fixture.exe+0x1110", "{what}");
        assert!(notes.iter().any(|note| note.contains(expected)), "{what}: {notes:?}");
        assert_eq!(files(cache.path()), [""; 0].map(PathBuf::from), "{what}");
    }
}

#[test]
fn a_server_that_is_not_there_is_asked_once() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let cache = tempfile::tempdir().unwrap();
    let mut symbols = Symbols::new(Kernel::None)
        .with(&Sources::new(Some(&format!("http://127.0.0.1:{port}")), None, None).cached_in(cache.path()));
    for age in 1..5 {
        let id = PdbId { guid: [1; 16], age, name: "a.pdb".into() };
        let image = Arc::new(Image { build_id: id.to_build_id(), ..(*pdb_image()[0]).clone() });
        assert_eq!(symbols.locate(false, &[image], BASE + 0x10)[0].function, "fixture.exe+0x10");
    }
    let notes = symbols.notes();
    assert!(
        notes.len() == 1 && notes[0].text.contains("not asked for names any more: there is no connection"),
        "{notes:?}"
    );
}

/// A program without its symbols, as distributions ship them, its debug file, and its build id.
fn stripped(dir: &Path) -> Option<(Vec<u8>, Vec<u8>, u64)> {
    let (full, stripped, debug) = (dir.join("full"), dir.join("stripped"), dir.join("debug"));
    compile("gcc", &["-O2", "-g", "-Wl,--build-id=0x00112233445566778899aabbccddeeff00112233"], &["inline.c"], &full)?;
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    tool("objcopy", &["--only-keep-debug", &text(&full), &text(&debug)])?;
    tool("objcopy", &["--strip-all", &text(&full), &text(&stripped)])?;
    Some((std::fs::read(&stripped).unwrap(), std::fs::read(&debug).unwrap(), symbol(&full, "outer")))
}

const ID: &str = "00112233445566778899aabbccddeeff00112233";

#[test]
fn debuginfod_gives_programs_and_debug_information_by_build_id() {
    let dir = tempfile::tempdir().unwrap();
    let Some((program, debug, outer)) = stripped(dir.path()) else { return };
    let path = dir.path().join("nobody/has/this/program");
    let image = Arc::new(Image {
        path: path.to_str().unwrap().into(),
        build_id: decode_build_id(ID),
        ..(*flat_image(&dir.path().join("full"))).clone()
    });
    let empty = Server::start(Box::new(|_, stream| not_found(stream)));
    let full = Server::start(Box::new(move |path, stream| match path {
        _ if path == format!("/d/buildid/{ID}/executable") => with_length(stream, &program),
        _ if path == format!("/d/buildid/{ID}/debuginfo") => with_length(stream, &debug),
        _ => not_found(stream),
    }));
    let cache = dir.path().join("cache");
    let urls = format!(" ima:enforcing {} {}/d/ ", empty.url, full.url);
    let name = |urls: Option<&str>| {
        let sources = Sources::new(None, None, urls).cached_in(&cache);
        let mut symbols = Symbols::new(Kernel::None).of_another_machine().with(&sources);
        let found = symbols.locate(false, std::slice::from_ref(&image), BASE + outer + 4);
        (found.last().unwrap().clone(), found.len(), symbols.notes())
    };
    let (unnamed, _, notes) = name(None);
    assert!(unnamed.function.starts_with("program+0x") && notes.len() == 1, "{unnamed:?} {notes:?}");
    let (found, frames, notes) = name(Some(&urls));
    assert_eq!((found.function.as_str(), found.line, frames > 1), ("outer", 9, true), "{notes:?}");
    assert!(found.file.ends_with("inline.c") && found.module == path.to_str().unwrap());
    assert_eq!(full.asked(), ["executable", "debuginfo"].map(|what| format!("/d/buildid/{ID}/{what}")));
    assert_eq!(empty.asked().len(), 2);
    // All from the cache.
    assert_eq!(name(Some(&urls)).0.function, "outer");
    assert_eq!((full.asked().len(), empty.asked().len()), (0, 0));
}

#[test]
fn debuginfod_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let Some((mut program, ..)) = stripped(dir.path()) else { return };
    let id = decode_build_id(ID).unwrap();
    let at = program.windows(id.len()).position(|w| w == id).unwrap();
    program[at] ^= 0xff;
    let server = Server::start(Box::new(move |_, stream| with_length(stream, &program)));
    let image = Arc::new(Image {
        path: "/nobody/has/this".into(),
        build_id: Some(id),
        ..(*flat_image(&dir.path().join("full"))).clone()
    });
    let cache = dir.path().join("cache");
    let sources = Sources::new(None, None, Some(&server.url)).cached_in(&cache);
    let mut symbols = Symbols::new(Kernel::None).of_another_machine().with(&sources);
    assert!(symbols.locate(false, &[image], BASE + 0x1004)[0].function.starts_with("this+0x"));
    assert!(symbols.notes().iter().any(|n| n.text.contains("has another build id")), "{:?}", symbols.notes());
    assert_eq!(files(&cache), [""; 0].map(PathBuf::from));
}
