//! Durations as people write them: `1y2mo3w4d5h6m7s8ms9us10ns` as in CQL, `P1Y2M4DT5H6M7S` as in ISO 8601.

/// Neither months nor days have a fixed length: what a server keeps is these three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) nanos: i64,
}

/// What one of each unit is: months, days, nanoseconds.
const UNITS: [(&str, [i64; 3]); 11] = [
    ("y", [12, 0, 0]),
    ("mo", [1, 0, 0]),
    ("w", [0, 7, 0]),
    ("d", [0, 1, 0]),
    ("h", [0, 0, 3_600_000_000_000]),
    ("m", [0, 0, 60_000_000_000]),
    ("s", [0, 0, 1_000_000_000]),
    ("ms", [0, 0, 1_000_000]),
    ("us", [0, 0, 1_000]),
    ("µs", [0, 0, 1_000]),
    ("ns", [0, 0, 1]),
];

/// A duration; with `-` before it all of it is negative. Each unit may stand there once.
pub(super) fn parse(text: &str) -> Option<Parts> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let text = text.to_lowercase();
    let mut parts = match text.strip_prefix('p') {
        Some(iso) => {
            let (date, clock) = iso.split_once('t').unwrap_or((iso, ""));
            let date = counted(date)?.into_iter().map(|(count, unit)| (count, if unit == "m" { "mo" } else { unit }));
            date.chain(counted(clock)?).collect()
        }
        None => counted(&text)?,
    };
    let count = parts.len();
    let mut sums = [0_i64; 3];
    for (count, unit) in &parts {
        let (_, each) = UNITS.iter().find(|(name, _)| name == unit)?;
        for (sum, each) in sums.iter_mut().zip(each) {
            *sum = sum.checked_add(count.checked_mul(*each)?)?;
        }
    }
    parts.sort_unstable_by_key(|(_, unit)| *unit);
    parts.dedup_by_key(|(_, unit)| *unit);
    let [months, days, nanos] = sums.map(|sum| sum * sign);
    let whole = Parts { months: months.try_into().ok()?, days: days.try_into().ok()?, nanos };
    (count > 0 && parts.len() == count).then_some(whole)
}

/// `2h30m` is 2 of `h` and 30 of `m`.
fn counted(mut text: &str) -> Option<Vec<(i64, &str)>> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let (count, behind) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let (unit, rest) = behind.split_at(behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len()));
        parts.push((count.parse().ok()?, unit));
        text = rest;
    }
    Some(parts)
}

/// As it can be read again.
pub(super) fn show(Parts { months, days, nanos }: Parts) -> String {
    let sign = if months < 0 || days < 0 || nanos < 0 { "-" } else { "" };
    format!("{sign}{}mo{}d{}ns", months.unsigned_abs(), days.unsigned_abs(), nanos.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(months: i32, days: i32, nanos: i64) -> Option<Parts> {
        Some(Parts { months, days, nanos })
    }

    #[test]
    fn units_add_up_by_what_has_a_fixed_length() {
        let minute = 60_000_000_000;
        assert_eq!(parse("2y3mo2w6d23h59m"), parts(27, 20, (23 * 60 + 59) * minute));
        assert_eq!(parse("0mo0d0h0m0s"), parts(0, 0, 0));
        assert_eq!(parse("1s2ms3us4ns"), parts(0, 0, 1_002_003_004));
        assert_eq!(parse("5µs"), parse("5us"));
        assert_eq!(parse("-1MO2h"), parts(-1, 0, -120 * minute));
        assert_eq!(parse("P1Y2M3DT4H5M6S"), parse("1y2mo3d4h5m6s"));
        assert_eq!(parse("-P2W"), parts(0, -14, 0));
        assert_eq!(parse("PT1M"), parts(0, 0, minute));
        for text in [parts(1, 2, 3), parts(-1, 0, -3)] {
            assert_eq!(parse(&show(text.unwrap())), text);
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in
            ["", "-", "P", "1", "h", "1x", "1h2h", "1h 2m", "--1h", "9223372036854775807h", "9999999999d", "1.5h", "PT"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
