//! Files as they appear, and what is planted in their place.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn appears_whole_and_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svg");
    let mut output = Output::create(&path, Readers::Owner).unwrap();
    output.write_all(b"half").unwrap();
    assert!(!path.exists());
    assert_eq!(output.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    output.commit().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"half");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(folder.path()), ["a.svg"]);
}

#[test]
fn what_is_not_committed_leaves_the_older_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "old").unwrap();
    let mut output = Output::create(&path, Readers::Umask).unwrap();
    output.write_all(b"new").unwrap();
    drop(output);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(folder.path()), ["a.csv"]);
}

#[test]
fn links_are_replaced_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, soft, hard) = (folder.path().join("victim"), folder.path().join("s"), folder.path().join("h"));
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, &soft).unwrap();
    std::fs::hard_link(&victim, &hard).unwrap();
    for path in [&soft, &hard] {
        write(path, Readers::Owner, b"new").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "new");
        assert!(std::fs::symlink_metadata(path).unwrap().is_file());
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(std::fs::metadata(&victim).unwrap().nlink(), 1);
}

#[test]
fn a_new_file_does_not_open_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("spool"), folder.path().join("link"));
    symlink(folder.path().join("elsewhere"), &link).unwrap();
    assert_eq!(create_new(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let file = create_new(&path).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn what_cannot_be_written_is_said_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let sentence = |path: &Path| Output::create(path, Readers::Umask).unwrap_err().to_string();
    let nowhere = folder.path().join("none/a.svg");
    assert!(sentence(&nowhere).contains("there is no folder"), "{}", sentence(&nowhere));
    assert!(sentence(folder.path()).ends_with("cannot be written: it is a folder"));
    assert!(sentence(Path::new("/")).contains("it is a folder"));
}

#[test]
fn what_a_shell_opened_is_written_to() {
    let (mut end, pipe) = std::io::pipe().unwrap();
    for folder in DESCRIPTORS {
        let path = format!("{folder}/{}", pipe.as_raw_fd());
        let output = Output::create(Path::new(&path), Readers::Umask).unwrap();
        assert!(output.is_stream());
        drop(output);
        write(Path::new(&path), Readers::Umask, b"said").unwrap();
        let mut said = [0; 4];
        end.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"said");
    }
}

#[test]
fn devices_are_written_as_they_are() {
    write(Path::new("/dev/null"), Readers::Owner, b"gone").unwrap();
    assert!(!std::fs::symlink_metadata("/dev/null").unwrap().is_file());
}
