//! Checksums made right again: without that nearly all damage ends at them, and what is behind is never tried.

use std::io::Cursor;

/// Those of all members of a zip whose directory can still be read.
pub fn zip(bytes: &mut [u8]) {
    let Ok(mut zip) = zip::ZipArchive::new(Cursor::new(&*bytes)) else { return };
    let mut members = Vec::new();
    for i in 0..zip.len() {
        let Ok(member) = zip.by_index_raw(i) else { continue };
        let Some(from) = member.data_start() else { continue };
        members.push((from as usize, member.size() as usize, member.central_header_start() as usize + 16));
    }
    for (from, size, crc_at) in members {
        let Some(data) = from.checked_add(size).and_then(|to| bytes.get(from..to)) else { continue };
        let crc = crc32fast::hash(data).to_le_bytes();
        if let Some(place) = bytes.get_mut(crc_at..crc_at + 4) {
            place.copy_from_slice(&crc);
        }
    }
}

/// Those of all blocks of a spool whose headers can still be read: 20 bytes, the length of what follows at 8, the checksum of
/// both at 16.
pub fn spool(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 20) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some(payload) = bytes.get(at + 20..at + 20 + length) else { return };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..16]);
        crc.update(payload);
        bytes[at + 16..at + 20].copy_from_slice(&crc.finalize().to_le_bytes());
        at += 20 + length;
    }
}
