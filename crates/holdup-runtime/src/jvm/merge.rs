//! Two maps of one process, the second asked for later.

use std::collections::HashSet;

/// `old` and `new` together are kept up to so many bytes; above, only what is there now.
const KEPT: usize = 64 << 20;

/// The lines of `old` that are not in `new`, then `new`: code that was thrown away meanwhile keeps its name, and what took its place
/// comes later, which is how a map is read. Linear in both.
pub fn merge(old: &[u8], new: Vec<u8>) -> Vec<u8> {
    let lines = |text| <[u8]>::split(text, |&b: &u8| b == b'\n').filter(|line: &&[u8]| !line.is_empty());
    let there: HashSet<&[u8]> = lines(&new).collect();
    let mut both = Vec::new();
    for line in lines(old).filter(|line| !there.contains(line)) {
        both.extend_from_slice(line);
        both.push(b'\n');
    }
    drop(there);
    if both.is_empty() || both.len().saturating_add(new.len()) > KEPT {
        return new;
    }
    both.extend_from_slice(&new);
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_thrown_away_stays_before_what_is_there() {
        assert_eq!(merge(b"1 1 a\n2 1 b", b"2 1 b\n1 1 c\n".to_vec()), b"1 1 a\n2 1 b\n1 1 c\n");
        assert_eq!(merge(b"", b"x".to_vec()), b"x");
        assert_eq!(merge(b"x\n", b"".to_vec()), b"x\n");
    }
}
