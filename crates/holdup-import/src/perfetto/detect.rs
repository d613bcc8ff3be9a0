//! Is this a trace of Perfetto's? It has no magic: what tells it is that all of its beginning has the form of packets.

use super::names;
use super::wire::{Fields, Value, varint};

/// Tag of a packet.
const PACKET: u64 = 0x0a;
/// Fields of packets that are numbers, after the published schema.
const NUMBERS: [u32; 10] = [3, 8, 10, 13, 41, 42, 58, 79, 87, 98];
/// Fields of packets that are messages, beside their data.
const MESSAGES: [u32; 2] = [12, 59];
/// As many known fields are no accident.
const ENOUGH: usize = 32;
/// A tag and a length take no more.
const HEADER: usize = 20;

/// Whether `head` begins with packets, and holds in them nothing but what packets have.
pub(crate) fn is_perfetto(head: &[u8]) -> bool {
    let (mut rest, mut known) = (head, 0);
    while known < ENOUGH {
        let Some((tag, after)) = varint(rest) else { return known > 0 && rest.len() < HEADER };
        if tag != PACKET {
            return false;
        }
        let Some((len, content)) = varint(after) else { return known > 0 && rest.len() < HEADER };
        let whole = usize::try_from(len).ok().and_then(|len| content.split_at_checked(len));
        let Some((packet, behind)) = whole else {
            return known + fields(content).map_or(0, |(found, cut)| found + usize::from(begins_with_data(cut))) > 0;
        };
        match fields(packet) {
            Some((found, [])) => known += found,
            _ => return false,
        }
        rest = behind;
    }
    true
}

/// How many fields a packet has, and what is left if it is cut; `None` if it has some that no packet has.
fn fields(packet: &[u8]) -> Option<(usize, &[u8])> {
    let (mut fields, mut found) = (Fields::new(packet), 0);
    for (number, value) in &mut fields {
        let known = match value {
            Value::Number(_) => NUMBERS.contains(&number),
            Value::Bytes(_) => MESSAGES.contains(&number) || names::packet(number as usize).is_some(),
        };
        if !known {
            return None;
        }
        found += 1;
    }
    Some((found, fields.rest()))
}

/// Whether these are the first bytes of a packet's data.
fn begins_with_data(bytes: &[u8]) -> bool {
    varint(bytes).is_some_and(|(tag, _)| tag & 7 == 2 && names::packet((tag >> 3) as usize).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_packets_is_none_of_these() {
        for text in ["\n", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "\nperf  1234 [001]", "\n\x05hello", "\n\x08\x72\x06hello!"]
        {
            assert!(!is_perfetto(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn packets_are_told_from_their_first_bytes() {
        // trusted_uid, sequence; then ftrace_events that are longer than what is there.
        let head = [0x0a, 5, 0x18, 0x8f, 0x4e, 0x50, 1, 0x0a, 0x90, 0x4e, 0x0a, 0x8d, 0x4e, 8, 1];
        assert!(is_perfetto(&head) && is_perfetto(&head[..7]) && is_perfetto(&head[7..]));
        assert!(!is_perfetto(&head[1..]) && !is_perfetto(&[]));
    }
}
