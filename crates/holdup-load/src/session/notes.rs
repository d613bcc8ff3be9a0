//! What a script says of its run besides: fields of the report, and metrics of its own.

use std::collections::BTreeMap;

use holdup_base::named;

use crate::driver::DriverError;

/// Fields, and metrics, that a script may have. Neither is what the engine counts as its memory.
const MOST: usize = 64;
/// The longest name or text, in bytes.
const LONGEST: usize = 1000;

/// Bits of a number's fraction that are left out where values are counted together: they keep to one part in 128, and whole
/// numbers up to 256 are kept as they are.
const LEFT_OUT: u32 = f64::MANTISSA_DIGITS - 1 - 7;

named! {
    /// Which values of a metric are the better ones.
    pub enum Better {
        /// The greater.
        Higher = "higher",
        /// The smaller.
        Lower = "lower",
    }
}

/// What one thread's script said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// Fields of the report, by name.
    pub fields: BTreeMap<String, String>,
    /// Metrics, by name.
    pub metrics: BTreeMap<String, Values>,
    /// Which values of them are better, where the script said so.
    pub better: BTreeMap<String, Better>,
}

impl Notes {
    /// Adds another thread's.
    pub(crate) fn add(&mut self, other: &Notes) {
        self.fields.extend(other.fields.clone());
        self.better.extend(other.better.clone());
        for (name, values) in &other.metrics {
            self.metrics.entry(name.clone()).or_default().add(values);
        }
    }

    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), DriverError> {
        check(&self.fields, "fields of the report", name)?;
        if text.len() > LONGEST {
            return Err(DriverError::fatal(format!("the field {name:?} is longer than {LONGEST} bytes: shorten it")));
        }
        self.fields.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    pub(super) fn declare(&mut self, name: &str, word: &str) -> Result<(), DriverError> {
        check(&self.better, "metrics", name)?;
        let better = Better::ALL.iter().find(|better| better.name() == word).ok_or_else(|| {
            DriverError::fatal(format!(
                "of the metric {name:?} \"higher\" or \"lower\" values are better, and not {word:?}"
            ))
        })?;
        self.better.insert(name.to_owned(), *better);
        Ok(())
    }

    pub(super) fn record(&mut self, name: &str, value: f64) -> Result<(), DriverError> {
        if !value.is_finite() {
            return Err(DriverError::fatal(format!("the metric {name:?} is {value}, and only numbers can be counted")));
        }
        if let Some(values) = self.metrics.get_mut(name) {
            values.record(value);
            return Ok(());
        }
        check(&self.metrics, "metrics", name)?;
        self.metrics.entry(name.to_owned()).or_default().record(value);
        Ok(())
    }
}

fn check<T>(known: &BTreeMap<String, T>, what: &str, name: &str) -> Result<(), DriverError> {
    if name.is_empty() || name.len() > LONGEST {
        return Err(DriverError::fatal(format!("a name has 1 to {LONGEST} bytes, and this one has {}", name.len())));
    }
    if known.len() >= MOST && !known.contains_key(name) {
        return Err(DriverError::fatal(format!("a script has {MOST} {what} at most, and {name:?} is one more")));
    }
    Ok(())
}

/// The values of a metric: how many, their sum and ends exactly, and how they are distributed to one part in 128.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    count: u64,
    sum: f64,
    ends: Option<(f64, f64)>,
    /// How many there are from each of these numbers, in their order, up to the next.
    counts: BTreeMap<i64, u64>,
}

impl Values {
    fn record(&mut self, value: f64) {
        let (least, most) = self.ends.unwrap_or((value, value));
        self.ends = Some((least.min(value), most.max(value)));
        self.count += 1;
        self.sum += value;
        *self.counts.entry(place(value) >> LEFT_OUT).or_default() += 1;
    }

    fn add(&mut self, other: &Values) {
        let Some((low, high)) = other.ends else { return };
        let (least, most) = self.ends.unwrap_or((low, high));
        self.ends = Some((least.min(low), most.max(high)));
        self.count += other.count;
        self.sum += other.sum;
        for (at, count) in &other.counts {
            *self.counts.entry(*at).or_default() += count;
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; 0 without values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The value that this share of them does not exceed; 0 without values.
    pub fn quantile(&self, share: f64) -> f64 {
        let Some((least, most)) = self.ends else { return 0.0 };
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        if wanted >= self.count {
            return most;
        }
        let mut seen = 0;
        let at = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        at.map_or(most, |(at, _)| number(at << LEFT_OUT)).clamp(least, most)
    }
}

/// Where a number stands among all: integers in the order of the numbers.
fn place(value: f64) -> i64 {
    // There is one zero.
    turned((value + 0.0).to_bits().cast_signed())
}

fn number(place: i64) -> f64 {
    f64::from_bits(turned(place).cast_unsigned())
}

/// The bits of a negative number grow with its distance from zero: turned round, they grow with the number. It undoes itself.
fn turned(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(of: impl Iterator<Item = f64>) -> Values {
        let mut values = Values::default();
        of.for_each(|value| values.record(value));
        values
    }

    #[test]
    fn quantiles_are_near_and_ends_exact() {
        let all = values((1..=1000).map(|i| f64::from(i) * 0.37));
        assert_eq!((all.count(), all.quantile(0.0), all.quantile(1.0)), (1000, 0.37, 370.0));
        for share in [0.1, 0.5, 0.9, 0.99] {
            let (is, should) = (all.quantile(share), share * 370.0);
            assert!((is / should - 1.0).abs() < 0.01, "{share}: {is} for {should}");
        }
        assert!((all.mean() - 185.185).abs() < 1e-9);
    }

    #[test]
    fn negative_numbers_zero_and_small_whole_ones_are_themselves() {
        let all = values([-3.0, -0.0, 0.0, 17.0, 200.0].into_iter());
        let at: Vec<f64> = [0.2, 0.4, 0.6, 0.8, 1.0].map(|share| all.quantile(share)).to_vec();
        assert_eq!(at, [-3.0, 0.0, 0.0, 17.0, 200.0]);
        assert_eq!(Values::default().quantile(0.5), 0.0);
    }

    #[test]
    fn threads_together_are_as_one() {
        let [mut a, b] = [0..500, 500..1000].map(|part| values(part.map(f64::from)));
        a.add(&b);
        a.add(&Values::default());
        assert_eq!(a, values((0..1000).map(f64::from)));
    }

    #[test]
    fn a_script_has_few_names_and_only_numbers() {
        let mut notes = Notes::default();
        assert!(notes.record("x", f64::NAN).is_err_and(|error| error.message.contains("\"x\" is NaN")));
        for i in 0..MOST {
            notes.record(&i.to_string(), 1.0).unwrap();
        }
        notes.record("0", 2.0).unwrap();
        assert!(notes.record("one", 1.0).is_err_and(|error| error.message.contains("64 metrics at most")));
        assert!(notes.set("", "x").is_err() && notes.set("x", &"x".repeat(1001)).is_err());
        notes.set("x", "y").unwrap();
        assert!(notes.declare("x", "greater").is_err_and(|error| error.message.contains("\"higher\" or \"lower\"")));
        notes.declare("x", "lower").unwrap();
        assert_eq!(notes.better["x"], Better::Lower);
    }
}
