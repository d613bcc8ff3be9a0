//! Dates and times as people write them (ISO 8601), since a script has no type of its own for them.

const DAY_MS: i64 = 86_400_000;
const DAY_NS: i64 = 86_400_000_000_000;

/// Milliseconds since 1970 of `2026-11-21`, `2026-11-21T10:00`, `2026-11-21 10:00:00.5+01:00`; without a zone it is UTC.
pub(super) fn timestamp_ms(text: &str) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let days = days(date)?;
    if rest.is_empty() {
        return days.checked_mul(DAY_MS);
    }
    let clock = rest.strip_prefix(['T', ' '])?;
    let zone_at = clock.find(['Z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(zone_at);
    let nanos = nanos_of_day(clock)?;
    days.checked_mul(DAY_MS)?.checked_add(nanos / 1_000_000)?.checked_sub(zone_ms(zone)?)
}

/// Days since 1970 of `2026-11-21`.
pub(super) fn days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468)
}

/// Nanoseconds since midnight of `10:00`, `10:00:00` or `10:00:00.123456789`.
pub(super) fn nanos_of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let mut parts = clock.splitn(3, ':');
    let hours = number(parts.next()?, 2)?;
    let minutes = number(parts.next()?, 2)?;
    let seconds = parts.next().map_or(Some(0), |part| number(part, 2))?;
    let fraction = match fraction {
        None => 0,
        Some(digits) if digits.len() <= 9 => number(digits, digits.len())? * 10_i64.pow(9 - digits.len() as u32),
        Some(_) => return None,
    };
    let nanos = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction;
    (minutes < 60 && seconds < 60 && nanos < DAY_NS).then_some(nanos)
}

fn zone_ms(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let (sign, digits) = zone.split_at(1);
    let digits = digits.replace(':', "");
    let minutes = match digits.len() {
        2 => number(&digits, 2)? * 60,
        4 => number(&digits[..2], 2)? * 60 + number(&digits[2..], 2)?,
        _ => return None,
    };
    Some(if sign == "-" { -minutes } else { minutes } * 60_000)
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        // As `date -u -d … +%s` has them.
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-02-29"), Some(11_016));
        assert_eq!(days("1900-03-01"), Some(-25_508));
        assert_eq!(timestamp_ms("2026-11-21T10:06:22Z"), Some(1_795_255_582_000));
        assert_eq!(timestamp_ms("2026-11-21 11:06:22.5+01:00"), Some(1_795_255_582_500));
        assert_eq!(timestamp_ms("2026-11-21 04:36-0530"), Some(1_795_255_560_000));
        assert_eq!(timestamp_ms("2026-11-21"), Some(1_795_219_200_000));
        assert_eq!(nanos_of_day("23:59:59.000000001"), Some(86_399_000_000_001));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2025-02-29",
            "2026-11-21X",
            "2026-11-21T25:00",
            "2026-11-21T10:60",
            "+026-11-21",
        ] {
            assert_eq!(timestamp_ms(text), None, "{text}");
        }
    }
}
