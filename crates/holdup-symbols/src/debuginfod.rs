//! debuginfod: servers that have programs and their debug information by build id.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::elf::Elf;
use crate::fetch::Fetch;
use crate::find::{hex, same_id};
use crate::meter::Meter;

/// Shortest build id that is asked for, in bytes: what is shorter is no proof.
const SHORTEST: usize = 8;

/// The servers, and the folders in which their files are kept.
#[derive(Debug, Clone)]
pub(crate) struct Debuginfod {
    pub servers: Vec<String>,
    /// holdup's own.
    pub cache: PathBuf,
    /// That of debuginfod's own client, which is only read.
    pub other_cache: Option<PathBuf>,
    pub fetch: Arc<Fetch>,
}

/// What a server has of a build.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Artifact {
    Executable,
    Debuginfo,
}

impl Artifact {
    fn name(self) -> &'static str {
        match self {
            Artifact::Executable => "executable",
            Artifact::Debuginfo => "debuginfo",
        }
    }
}

impl Debuginfod {
    /// The file with this build id.
    pub fn get(&self, id: &[u8], artifact: Artifact, meter: &Arc<Meter>) -> Option<Elf> {
        let id = unpadded(id);
        if id.len() < SHORTEST {
            return None;
        }
        let (digits, name) = (hex(id), artifact.name());
        let open = |path: &Path| {
            let elf = Elf::open(path, meter)?;
            if same_id(elf.build_id.as_deref(), id) { Ok(elf) } else { Err("has another build id".to_owned()) }
        };
        let others = self.other_cache.iter().map(|cache| cache.join(&digits).join(name));
        if let Some(found) = others.filter(|path| path.is_file()).find_map(|path| open(&path).ok()) {
            return Some(found);
        }
        let kept = self.cache.join(&digits).join(name);
        let mut accept = |path: &Path| open(path).map(drop);
        let parts = ["buildid", &digits, name];
        let path = self.servers.iter().find_map(|server| self.fetch.get(server, &parts, &kept, &mut accept))?;
        open(&path).ok()
    }
}

/// perf pads ids to 20 bytes with zeros; linkers make some of 8, 16 and 20.
fn unpadded(id: &[u8]) -> &[u8] {
    let shorter = [8, 16].iter().filter_map(|&len| id.split_at_checked(len));
    shorter.into_iter().find(|(_, rest)| rest.iter().all(|&b| b == 0)).map_or(id, |(short, _)| short)
}

/// The servers in `DEBUGINFOD_URLS`: separated by white space, among words that ask for signatures.
pub(crate) fn servers(variable: &str) -> Vec<String> {
    variable
        .split_whitespace()
        .filter(|word| word.contains("://"))
        .map(|url| url.trim_end_matches('/').to_owned())
        .collect()
}

/// The folder of debuginfod's own client.
pub(crate) fn client_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("DEBUGINFOD_CACHE_PATH")
        .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("debuginfod_client")))
        .or_else(|| Some(absolute("HOME")?.join(".cache/debuginfod_client")))
}
