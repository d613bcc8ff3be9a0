//! The process that answers for the agent: who speaks to the network is nobody, has no privilege, and knows nothing but the text.
//!
//! ```text
//!   agent (root)  ── texts, through a socket pair ──▶  answers (nobody)  ◀── GET /metrics ──  a scraper
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, anyhow};
use holdup_export::metrics::MEDIA_TYPE;
use holdup_server::scrape::{self, Board};

use crate::cli::ANSWER_METRICS;
use crate::text::screen::say;

/// The user who owns nothing.
const NOBODY: u32 = 65534;
/// The longest text, in bytes.
const LONGEST: u32 = 64 << 20;

/// The process that answers.
pub struct Apart {
    texts: UnixStream,
    address: SocketAddr,
}

impl Apart {
    /// Listens on `address`. With a secret, who asks has to show it.
    pub fn start(address: SocketAddr, secret: Option<&str>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).with_context(|| format!("{address} cannot be listened on"))?;
        let address = listener.local_addr()?;
        let (texts, theirs) = UnixStream::pair()?;
        spawn(&listener, &theirs).context("the process that answers cannot be started")?;
        let mut apart = Apart { texts, address };
        apart.tell(secret.unwrap_or_default())?;
        Ok(apart)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it answers with this text.
    pub fn tell(&mut self, text: &str) -> anyhow::Result<()> {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX).min(LONGEST);
        let text = &text.as_bytes()[..length as usize];
        let told = self.texts.write_all(&length.to_le_bytes()).and_then(|()| self.texts.write_all(text));
        told.map_err(|why| anyhow!("the process that answers has ended: {why}"))
    }
}

/// Root makes it somebody else's, where that may run this program.
fn spawn(listener: &TcpListener, theirs: &UnixStream) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        match command(listener, theirs)?.uid(NOBODY).gid(NOBODY).spawn() {
            Err(why) if why.kind() == io::ErrorKind::PermissionDenied => {
                say!("note: what answers runs as root, without its privileges: it may not become another user ({why})");
            }
            other => return other.map(drop),
        }
    }
    command(listener, theirs)?.spawn().map(drop)
}

/// This program, with the socket on which it listens as its standard input, and that through which it is told as its output.
fn command(listener: &TcpListener, theirs: &UnixStream) -> io::Result<Command> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("holdup")
        .arg(ANSWER_METRICS)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener.try_clone()?)))
        .stdout(Stdio::from(OwnedFd::from(theirs.try_clone()?)));
    Ok(command)
}

/// Answers, as the process apart, until the agent ends.
pub fn answer() -> anyhow::Result<ExitCode> {
    holdup_record::give_up_all();
    let listener = TcpListener::from(rustix::io::dup(rustix::stdio::stdin())?);
    let mut texts = UnixStream::from(rustix::io::dup(rustix::stdio::stdout())?);
    // Who asks early waits for the first text.
    let (Some(secret), Some(first)) = (told(&mut texts)?, told(&mut texts)?) else { return Ok(ExitCode::SUCCESS) };
    let board = Board::default();
    board.put_up(first);
    let server = scrape::on(listener, (!secret.is_empty()).then_some(secret), board.clone(), MEDIA_TYPE)?;
    std::thread::Builder::new().name("holdup-metrics".into()).spawn(move || server.run())?;
    while let Some(text) = told(&mut texts)? {
        board.put_up(text);
    }
    Ok(ExitCode::SUCCESS)
}

/// What [`Apart::tell`] told; `None` when the agent has ended.
fn told(texts: &mut UnixStream) -> anyhow::Result<Option<String>> {
    let mut length = [0; 4];
    if texts.read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length);
    anyhow::ensure!(length <= LONGEST, "this is no text of an agent");
    let mut text = vec![0; length as usize];
    texts.read_exact(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}
