//! Where PDBs are: a symbol path, as Microsoft's debuggers read it from `_NT_SYMBOL_PATH`.

use std::path::{Path, PathBuf};

use holdup_trace::PdbId;

/// More elements are not looked at.
const ELEMENTS: usize = 64;
/// Longest name of a PDB, in bytes.
const NAME: usize = 255;

/// One place of a symbol path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A folder with PDBs, plain or in the folders of a symbol store.
    Folder(PathBuf),
    /// A symbol server, and the folder to keep what it gives in; `None` for holdup's own.
    Server(String, Option<PathBuf>),
}

/// Where to look, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SymbolPath(pub Vec<Place>);

impl SymbolPath {
    /// Reads `folder;srv*cache*https://server;cache*folder`. Of `srv` and `cache` the letters' case does not matter, and
    /// folders may be written with `\`. An element that is an address is a server.
    pub fn parse(text: &str) -> SymbolPath {
        let mut places = Vec::new();
        // What `cache*folder` says holds for all that follows it.
        let mut cache: Option<PathBuf> = None;
        for element in text.split(';').map(str::trim).filter(|e| !e.is_empty()).take(ELEMENTS) {
            let mut parts = element.split('*').map(str::trim);
            let first = parts.next().unwrap_or_default();
            match first.to_ascii_lowercase().as_str() {
                "cache" => {
                    cache = parts.find(|p| !p.is_empty()).map(folder);
                    places.extend(cache.clone().map(Place::Folder));
                }
                // `symsrv*symsrv.dll*…` is the long form.
                "srv" => store(&mut places, parts, cache.clone()),
                "symsrv" => store(&mut places, parts.skip(1), cache.clone()),
                _ => store(&mut places, std::iter::once(first), cache.clone()),
            }
        }
        SymbolPath(places)
    }

    /// The servers in it.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|place| match place {
            Place::Server(url, _) => Some(url.as_str()),
            Place::Folder(_) => None,
        })
    }

    /// The same without servers.
    pub fn local(self) -> SymbolPath {
        SymbolPath(self.0.into_iter().filter(|place| matches!(place, Place::Folder(_))).collect())
    }
}

/// The stores of one element: each is filled from those behind it.
fn store<'a>(places: &mut Vec<Place>, parts: impl Iterator<Item = &'a str>, cache: Option<PathBuf>) {
    let mut nearest = cache;
    for part in parts.filter(|p| !p.is_empty()) {
        if is_address(part) {
            places.push(Place::Server(part.trim_end_matches('/').to_owned(), nearest.clone()));
        } else {
            nearest = nearest.or_else(|| Some(folder(part)));
            places.push(Place::Folder(folder(part)));
        }
    }
}

/// Whether it names a server rather than a folder.
pub(crate) fn is_address(text: &str) -> bool {
    text.contains("://")
}

fn folder(text: &str) -> PathBuf {
    if Path::new(text).exists() { text.into() } else { text.replace('\\', "/").into() }
}

/// Where a PDB can lie in a folder: plain, in the folders of a symbol store, and of one with two tiers. Windows does not
/// care for the case of letters, so stores that were copied from there have any.
pub(crate) fn candidates(folder: &Path, id: &PdbId) -> Vec<PathBuf> {
    let Some(name) = file_name(id) else { return Vec::new() };
    let (key, lower) = (id.key(), name.to_ascii_lowercase());
    let mut all = Vec::new();
    for name in [name, &lower] {
        let tier: String = name.chars().take(2).collect();
        for key in [&key, &key.to_ascii_lowercase()] {
            all.push(folder.join(name).join(key).join(name));
            all.push(folder.join(tier.as_str()).join(name).join(key).join(name));
        }
        all.push(folder.join(name));
    }
    all.dedup();
    all
}

/// The PDB's name, if it is one: it comes from a trace, and must not lead elsewhere.
pub(crate) fn file_name(id: &PdbId) -> Option<&str> {
    let plain = !id.name.is_empty() && id.name.len() <= NAME && !id.name.starts_with('.');
    let inside = !id.name.contains(['/', '\\', ':', '?', '#', '%']) && !id.name.contains(char::is_control);
    (plain && inside).then_some(id.name.as_str())
}

/// What a compressed PDB is called: the last letter gives way to an underscore.
pub(crate) fn packed(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let shorter = name.strip_suffix(|last: char| last.is_ascii_alphabetic())?;
    Some(path.with_file_name(format!("{shorter}_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(path: &str) -> Place {
        Place::Folder(path.into())
    }

    #[test]
    fn all_forms_of_a_symbol_path_are_read() {
        let server = |url: &str, cache: Option<&str>| Place::Server(url.into(), cache.map(PathBuf::from));
        let cases = [
            ("/a;/b", vec![folder_of("/a"), folder_of("/b")]),
            ("SRV*/c*http://s/x/", vec![folder_of("/c"), server("http://s/x", Some("/c"))]),
            ("srv*https://s", vec![server("https://s", None)]),
            ("symsrv*symsrv.dll*\\c*/d*http://s", {
                vec![folder_of("/c"), folder_of("/d"), server("http://s", Some("/c"))]
            }),
            ("cache*/k; srv*http://s", vec![folder_of("/k"), server("http://s", Some("/k"))]),
            ("C:\\sym;;", vec![folder_of("C:/sym")]),
            ("http://s", vec![server("http://s", None)]),
            ("srv*", vec![]),
            ("", vec![]),
        ];
        for (text, places) in cases {
            assert_eq!(SymbolPath::parse(text), SymbolPath(places), "{text}");
        }
        assert_eq!(SymbolPath::parse("/a;srv*/b*http://s").local(), SymbolPath(vec![folder_of("/a"), folder_of("/b")]));
        assert_eq!(SymbolPath::parse(&"/a;".repeat(1000)).0.len(), ELEMENTS);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let id = |name: &str| PdbId { guid: [0xab; 16], age: 0x1f, name: name.into() };
        for name in ["", "..", "../x.pdb", "a/b.pdb", "a\\b.pdb", "C:x.pdb", ".x", "a\n.pdb", "a%2f.pdb"] {
            assert!(candidates(Path::new("/s"), &id(name)).is_empty(), "{name:?}");
        }
        let all = candidates(Path::new("/s"), &id("Nt.pdb"));
        let key = format!("{}1F", "AB".repeat(16));
        assert!(all.contains(&format!("/s/Nt.pdb/{key}/Nt.pdb").into()), "{all:?}");
        assert!(all.contains(&"/s/nt.pdb".into()) && all.contains(&"/s/Nt.pdb".into()));
        assert!(all.contains(&format!("/s/Nt/Nt.pdb/{key}/Nt.pdb").into()));
        assert_eq!(packed(Path::new("/s/nt.pdb")), Some("/s/nt.pd_".into()));
    }
}
