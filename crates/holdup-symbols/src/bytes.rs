//! Numbers and strings at a place in bytes of a foreign file: `None`, or nothing, where there are none.

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// The zero-terminated string at `at`, or the first `limit` bytes of it; empty if there is none. Many can lie in the
/// same bytes, so that without a limit a file has more text in it than bytes.
pub(crate) fn c_string(bytes: &[u8], at: usize, limit: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    let rest = &rest[..limit.min(rest.len())];
    &rest[..rest.iter().position(|&b| b == 0).unwrap_or(rest.len())]
}
