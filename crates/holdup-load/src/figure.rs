//! Numbers as text.

/// So many digits matter.
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
}
