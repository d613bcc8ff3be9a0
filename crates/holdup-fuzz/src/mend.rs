//! Checksums of zips made right again: without that nearly all damage ends at them, and what is behind is never tried.

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
