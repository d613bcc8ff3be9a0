//! Numbers as text, and lengths of time from it.

/// The unit in which so many seconds are read best, and how many of it are a second.
pub fn unit(seconds: f64) -> (&'static str, f64) {
    match seconds.abs() {
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e3),
        s if s >= 1e-6 => ("µs", 1e6),
        _ => ("ns", 1e9),
    }
}

/// A length of time in the unit in which it is read best: `1.25 s`, `3.4 ms`, `850 ns`.
pub fn duration(seconds: f64) -> String {
    // No time is never less than none.
    let seconds = if seconds == 0.0 { 0.0 } else { seconds };
    let (unit, per_s) = unit(seconds);
    let digits = match unit {
        "s" => 2,
        "ns" => 0,
        _ => 1,
    };
    format!("{:.digits$} {unit}", seconds * per_s)
}

/// Nanoseconds of a unit of time as people write it; no unit means seconds.
pub fn nanos_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

/// A number and what stands behind it, its unit: `("1.5", "ms")`.
pub fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()))
}

/// A count with its digits in threes: `81,926`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How many digits of a [`figure`] matter.
const DIGITS: usize = 3;

/// A number with three digits that matter.
pub fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let before = value.abs().log10().floor() as i32;
    let digits = (DIGITS as i32 - 1 - before).max(0) as usize;
    match before {
        -5..=5 => {
            let text = format!("{value:.digits$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
        }
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.0, 0.123_45, 0.000_104_4, 1.0, 21.848, 97.0, 1879.3, 1.5e7].map(figure);
        assert_eq!(texts, ["0", "0.123", "0.000104", "1", "21.8", "97", "1879", "1.50e7"]);
    }

    #[test]
    fn times_have_the_unit_they_are_read_in() {
        let texts = [2.0, 1.0, 0.0123, 45e-6, 1e-6, 850e-9, 0.0].map(duration);
        assert_eq!(texts, ["2.00 s", "1.00 s", "12.3 ms", "45.0 µs", "1.0 µs", "850 ns", "0 ns"]);
        assert_eq!(unit(-0.5), ("ms", 1e3));
        assert_eq!((split_unit("1.5ms"), nanos_of("ms"), nanos_of("")), (("1.5", "ms"), Some(1e6), Some(1e9)));
        assert_eq!((split_unit("10"), nanos_of("weeks")), (("10", ""), None));
    }

    #[test]
    fn counts_have_their_digits_in_threes() {
        assert_eq!([0, 999, 1000, 81_926, 1_234_567].map(count), ["0", "999", "1,000", "81,926", "1,234,567"]);
    }
}
