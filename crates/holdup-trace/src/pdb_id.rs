//! By what a Windows image names its program database.

/// Bytes of a build id before the file's name: GUID and age.
const FIXED: usize = 20;

/// The identity of the PDB that was made together with a Windows image.
///
/// An [`Image`](crate::Image) carries it as its build id: 16 bytes GUID in the order in which symbol servers spell it, 4 bytes
/// age (big-endian), then the file's name. It is always longer than 20 bytes, which no ELF build id is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PdbId {
    /// The GUID, in the order in which it is spelled.
    pub guid: [u8; 16],
    /// How often the PDB was written anew.
    pub age: u32,
    /// The PDB's file name, without a folder.
    pub name: String,
}

impl PdbId {
    /// From the bytes that Windows keeps: the first three fields of a GUID are little-endian there; `path` may have folders.
    pub fn from_windows(guid: [u8; 16], age: u32, path: &str) -> PdbId {
        let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
        let mut spelled = [d, c, b, a, f, e, h, g, 0, 0, 0, 0, 0, 0, 0, 0];
        if let Some(tail) = spelled.last_chunk_mut::<8>() {
            *tail = rest;
        }
        let name = path.rsplit(['\\', '/']).next().unwrap_or(path).to_owned();
        PdbId { guid: spelled, age, name }
    }

    /// From an image's build id; `None` if that is of another kind.
    pub fn from_build_id(id: &[u8]) -> Option<PdbId> {
        let (fixed, name) = id.split_at_checked(FIXED).filter(|(_, name)| !name.is_empty())?;
        let guid = *fixed.first_chunk()?;
        let age = u32::from_be_bytes(*fixed.last_chunk()?);
        Some(PdbId { guid, age, name: String::from_utf8_lossy(name).into_owned() })
    }

    /// As an image's build id; `None` if there is no name, without which it could be taken for another kind.
    pub fn to_build_id(&self) -> Option<Vec<u8>> {
        let id = [&self.guid[..], &self.age.to_be_bytes(), self.name.as_bytes()].concat();
        (id.len() > FIXED).then_some(id)
    }

    /// As symbol servers spell it: the GUID in upper-case digits, then the age in hexadecimal without leading zeros.
    pub fn key(&self) -> String {
        let guid: String = self.guid.iter().map(|b| format!("{b:02X}")).collect();
        format!("{guid}{:X}", self.age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_spelled_as_symbol_servers_do() {
        let bytes = [0xb9, 0x4b, 0x84, 0x38, 0x17, 0x20, 0x67, 0x49, 0xbe, 0x7a, 0xa4, 0xa2, 0xc2, 0x04, 0x30, 0xfa];
        let id = PdbId::from_windows(bytes, 2, "C:\\build\\ntkrnlmp.pdb");
        assert_eq!(
            (id.key().as_str(), id.name.as_str()),
            ("38844BB9201749 67BE7AA4A2C20430FA2".replace(' ', "").as_str(), "ntkrnlmp.pdb")
        );
        let kept = id.to_build_id().expect("it has a name");
        assert_eq!(PdbId::from_build_id(&kept), Some(id));
        assert_eq!(PdbId::from_build_id(&kept[..20]), None, "as long as an ELF's");
    }
}
