//! Opens the page in the browser of whoever sits at this machine.

use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;

/// Asks the desktop to open `url`, where there is one. What is returned has to stay as long as the page may be opened.
///
/// The address holds a secret, and command lines are for everybody to see: the browser is given a file, its owner's alone, that leads
/// there. Nothing is opened as root, whose browser would be root's too.
pub(super) fn open(url: &str) -> Option<NamedTempFile> {
    let has_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    if !has_desktop || rustix::process::geteuid().is_root() {
        return None;
    }
    let door = door(url).ok()?;
    let silent = || Stdio::null();
    let mut opener = Command::new("xdg-open");
    let mut child = opener.arg(door.path()).stdin(silent()).stdout(silent()).stderr(silent()).spawn().ok()?;
    // Some openers end at once, others with the browser.
    std::thread::spawn(move || child.wait());
    Some(door)
}

/// A page that leads to `url`, readable by this user alone.
fn door(url: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("holdup-view-").suffix(".html").tempfile()?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=\"0;url={url}\"><a href=\"{url}\">holdup</a>"
    )?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_secret_is_in_a_file_for_its_owner_alone() {
        let door = door("http://127.0.0.1:7/secret/").unwrap();
        let text = std::fs::read_to_string(door.path()).unwrap();
        assert!(text.contains("url=http://127.0.0.1:7/secret/\""), "{text}");
        assert_eq!(door.as_file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
