//! What the program takes of the machine's memory, by the kernel's count.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Bytes of memory that the program has now. About 5 µs.
pub(super) fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size())
}

/// Bytes of memory that the mapping around each address has now; 0 where that can't be told. Some milliseconds.
pub(super) fn of_mappings(addresses: &[usize]) -> Vec<usize> {
    let Ok(file) = File::open("/proc/self/smaps") else { return vec![0; addresses.len()] };
    of_mappings_in(BufReader::new(file), addresses)
}

fn of_mappings_in(smaps: impl BufRead, addresses: &[usize]) -> Vec<usize> {
    let mut found = vec![0; addresses.len()];
    let mut range = 0..0;
    for line in smaps.lines().map_while(Result::ok) {
        if let Some(kilobytes) = line.strip_prefix("Rss:") {
            let kilobytes: usize = kilobytes.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            for (address, bytes) in addresses.iter().zip(&mut found) {
                if range.contains(address) {
                    *bytes = kilobytes << 10;
                }
            }
        } else if let Some(mapping) = mapping(&line) {
            range = mapping;
        }
    }
    found
}

/// The addresses of a line that begins a mapping: `7f01-7f02 rw-p …`.
fn mapping(line: &str) -> Option<std::ops::Range<usize>> {
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_around_an_address_is_found() {
        let smaps = "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nRss:                4 kB\nPss: 1 kB\n\
                     3000-9000 rw-p 00000000 00:00 0 [stack]\nRss:               24 kB\n";
        assert_eq!(of_mappings_in(smaps.as_bytes(), &[0x1000, 0x2fff, 0x3000, 0x9000]), [4096, 4096, 24576, 0]);
    }

    #[test]
    fn memory_that_is_touched_is_seen() {
        let bytes = vec![1_u8; 32 << 20];
        assert!(resident().unwrap() >= bytes.len());
        assert!(of_mappings(&[bytes.as_ptr().addr() + (16 << 20)])[0] >= bytes.len() / 2);
    }
}
