//! Numbers of any length, as CQL has them: two's complement, most significant byte first, as few bytes as can be.

/// The bytes of a `varint`.
pub(super) fn to_bytes(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let sign = if number < 0 { 0xff } else { 0 };
    // The first byte that is kept has to show the sign in its highest bit.
    let skip = bytes.windows(2).take_while(|pair| pair[0] == sign && (pair[1] & 0x80 != 0) == (number < 0)).count();
    bytes[skip..].to_vec()
}

/// The number of a `varint`, unless it has more than 16 bytes.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    if bytes.len() > 16 {
        return None;
    }
    let mut all = if first & 0x80 == 0 { [0; 16] } else { [0xff; 16] };
    all[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(all))
}

/// `-12.50` is (-1250, 2): the digits and how many of them are behind the point.
pub(super) fn parse_decimal(text: &str) -> Option<(i128, i32)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some((digits, scale))
}

/// The text of a `decimal`.
pub(super) fn show_decimal(digits: i128, scale: i32) -> String {
    let Ok(scale) = usize::try_from(scale) else { return format!("{digits}e{}", -i64::from(scale)) };
    if scale == 0 {
        return digits.to_string();
    }
    if scale > 60 {
        return format!("{digits}e-{scale}");
    }
    let sign = if digits < 0 { "-" } else { "" };
    let all = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = all.split_at(all.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// A length in the variable coding of CQL: the number of leading ones of the first byte is the number of bytes after it.
pub(super) fn unsigned_vint(number: u64) -> Vec<u8> {
    let bits = 64 - number.leading_zeros().min(63);
    // Each byte after the first adds seven bits, the ninth byte eight.
    let more = if bits > 56 { 8 } else { (bits as usize - 1) / 7 };
    let mut bytes = number.to_be_bytes()[8 - more..].to_vec();
    let ones = !(0xff_u16 >> more) as u8;
    let first = if more >= 7 { 0 } else { (number >> (8 * more)) as u8 };
    bytes.insert(0, if more == 8 { 0xff } else { ones | first });
    bytes
}

/// A signed number in the same coding: small ones of either sign are short.
pub(super) fn signed_vint(number: i64) -> Vec<u8> {
    unsigned_vint(((number << 1) ^ (number >> 63)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_as_short_as_can_be() {
        for (number, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[255]),
            (-128, &[128]),
            (-129, &[255, 127]),
            (1 << 64, &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            assert_eq!(to_bytes(number), bytes, "{number}");
            assert_eq!(from_bytes(bytes), Some(number));
        }
        assert_eq!(from_bytes(&[1; 17]), None);
    }

    #[test]
    fn decimals_keep_their_digits() {
        for (text, digits, scale) in [("-12.50", -1250, 2), ("7", 7, 0), ("0.001", 1, 3), ("5e3", 5, -3)] {
            assert_eq!(parse_decimal(text), Some((digits, scale)), "{text}");
            assert_eq!(show_decimal(digits, scale), text);
        }
        for text in ["", ".", "1.-5", "x", "1e"] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_are_coded_as_in_the_protocol() {
        assert_eq!(unsigned_vint(0), [0]);
        assert_eq!(unsigned_vint(127), [127]);
        assert_eq!(unsigned_vint(128), [0x80, 128]);
        assert_eq!(unsigned_vint(256_000), [0xc3, 0xe8, 0x00]);
        assert_eq!(unsigned_vint((1 << 49) - 1), [0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(unsigned_vint(1 << 49), [0xfe, 2, 0, 0, 0, 0, 0, 0]);
        assert_eq!(unsigned_vint(u64::MAX), [0xff; 9]);
        assert_eq!(signed_vint(-1), [1]);
        assert_eq!(signed_vint(64), [0x80, 128]);
    }
}
