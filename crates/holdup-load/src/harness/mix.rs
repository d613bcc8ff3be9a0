//! Which function a cycle calls.

/// Functions with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    names: Vec<String>,
    /// The share of calls up to and with each function, of 2³².
    bounds: Vec<u64>,
    weights: Vec<f64>,
}

impl Mix {
    /// One function.
    pub fn single(name: &str) -> Mix {
        Mix { names: vec![name.to_owned()], bounds: vec![1 << 32], weights: vec![1.0] }
    }

    /// Functions as `name` or `name:weight`.
    ///
    /// # Errors
    /// A weight that is not a number above 0, or no function at all: a sentence.
    pub fn parse(functions: &[String]) -> Result<Mix, String> {
        let mut names = Vec::new();
        let mut weights = Vec::new();
        for function in functions {
            let (name, weight) = function.split_once(':').unwrap_or((function, "1"));
            let weight: f64 = weight.parse().unwrap_or(f64::NAN);
            if !(weight.is_finite() && weight > 0.0) {
                return Err(format!("`{function}`: the weight after the colon should be a number above 0"));
            }
            names.push(name.to_owned());
            weights.push(weight);
        }
        let total: f64 = weights.iter().sum();
        if names.is_empty() {
            return Err("there is no function to call".to_owned());
        }
        let mut sum = 0.0;
        let bounds = weights.iter().map(|weight| {
            sum += weight;
            (sum / total * 4_294_967_296.0) as u64
        });
        Ok(Mix { bounds: bounds.collect(), names, weights })
    }

    /// The functions.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The functions with their weights.
    pub(super) fn weighted(&self) -> Vec<(String, f64)> {
        self.names.iter().cloned().zip(self.weights.iter().copied()).collect()
    }

    /// `a:3, b:1`, or the one name.
    pub fn describe(&self) -> String {
        if let [name] = self.names.as_slice() {
            return name.clone();
        }
        let parts = self.names.iter().zip(&self.weights).map(|(name, weight)| format!("{name}:{weight}"));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The function of a cycle, by its index: the same each time, and unrelated to the functions of cycles near it.
    #[inline]
    pub fn pick(&self, cycle: u64) -> usize {
        if self.names.len() == 1 {
            return 0;
        }
        let mixed = (cycle ^ (cycle >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        self.bounds.iter().position(|bound| mixed < *bound).unwrap_or(self.names.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_follow_the_weights() {
        let mix = Mix::parse(&["read:3".to_owned(), "write".to_owned()]).unwrap();
        let reads = (0..40_000).filter(|cycle| mix.pick(*cycle) == 0).count();
        assert!((29_500..30_500).contains(&reads), "{reads}");
        // Also for the cycles of one thread of four.
        let reads = (0..10_000).filter(|cycle| mix.pick(cycle * 4 + 1) == 0).count();
        assert!((7_300..7_700).contains(&reads), "{reads}");
        assert_eq!(mix.describe(), "read:3, write:1");
        assert_eq!(Mix::single("run").pick(17), 0);
    }

    #[test]
    fn a_wrong_weight_is_a_sentence() {
        for wrong in ["read:0", "read:x", "read:-1", "read:inf"] {
            assert!(Mix::parse(&[wrong.to_owned()]).unwrap_err().contains(wrong));
        }
        assert!(Mix::parse(&[]).is_err());
    }
}
