//! PostgreSQL from what Debian installs, as a user that is not root, which it refuses.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use holdup_testing::Need;
use tempfile::TempDir;

use super::{Server, directory, free_port, program};

/// What [`start`] needs; the last one to be another user than root.
pub const NEEDS: &[Need] = &[Need::Program("initdb"), Need::Program("postgres"), Need::Program("setpriv")];

const PATIENCE: Duration = Duration::from_secs(60);

/// A server on [`Server::port`] with the superuser `ana`, whose password is `secret`, and the database `postgres`. With
/// `certificate` (a chain and its key, PEM) it takes TLS as well.
///
/// # Errors
/// Why it can't be had here: not installed, no user to run it as, or what it printed last.
pub fn start(certificate: Option<(&Path, &Path)>) -> Result<Server, String> {
    let places = places();
    let initdb = program("initdb", &places).ok_or("there is no initdb")?;
    let postgres = program("postgres", &places).ok_or("there is no postgres")?;
    let dir = directory("postgres");
    let data = dir.path().join("data");
    std::fs::write(dir.path().join("password"), "secret\n").map_err(|error| error.to_string())?;
    let as_user = hand_over(&dir)?;
    let initdb = [
        initdb.display().to_string(),
        "-D".into(),
        data.display().to_string(),
        "-U".into(),
        "ana".into(),
        "-A".into(),
        "scram-sha-256".into(),
        format!("--pwfile={}", dir.path().join("password").display()),
        "-E".into(),
        "UTF8".into(),
        "--no-sync".into(),
    ];
    let line = [&as_user[..], &initdb].concat();
    let output = Command::new(&line[0]).args(&line[1..]).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let port = free_port();
    let mut settings = vec![
        format!("port={port}"),
        "listen_addresses=127.0.0.1".into(),
        format!("unix_socket_directories={}", dir.path().display()),
        "fsync=off".into(),
        "shared_buffers=16MB".into(),
    ];
    if let Some((certificate, key)) = certificate {
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            std::fs::copy(from, data.join(name)).map_err(|error| format!("{name} can't be copied: {error}"))?;
        }
        run(Command::new("chmod").arg("600").arg(data.join("server.key")))?;
        hand_over(&dir)?;
        settings.push("ssl=on".into());
    }
    let mut line = as_user;
    line.extend([postgres.display().to_string(), "-D".into(), data.display().to_string()]);
    line.extend(settings.into_iter().flat_map(|setting| ["-c".into(), setting]));
    let server = Server::start(&line, dir, port, PATIENCE)?;
    wait_until_ready(&server, &data)?;
    Ok(server)
}

/// It listens before it takes anyone; the last line of this file says when it does.
fn wait_until_ready(server: &Server, data: &Path) -> Result<(), String> {
    let start = Instant::now();
    while !std::fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|text| text.contains("ready")) {
        if start.elapsed() > PATIENCE {
            return Err(format!("it was not ready within {PATIENCE:?}: {}", server.log()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Debian keeps each version's programs in a directory of its own; the newest comes first.
fn places() -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    versions.reverse();
    versions
}

/// What to put before a command: nothing, or for root the change to a user who then owns the directory.
fn hand_over(dir: &TempDir) -> Result<Vec<String>, String> {
    let id = Command::new("id").arg("-u").output().map_err(|error| format!("id can't be run: {error}"))?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Ok(Vec::new());
    }
    run(Command::new("chown").args(["-R", "nobody"]).arg(dir.path()))?;
    Ok(["setpriv", "--reuid=nobody", "--clear-groups"].map(str::to_owned).into())
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        outcome => Err(format!("{command:?} failed: {outcome:?}")),
    }
}
