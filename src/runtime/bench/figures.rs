//! Figures that were taken several times: the middle one, the least and the greatest.

use serde_json::{Value, json};

/// The middle one; of an even number, the upper of the two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// One figure, as it came out in each round.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures(pub Vec<f64>);

impl Figures {
    /// The middle one; not a number if there is none.
    pub fn median(&self) -> f64 {
        median(self.0.clone()).unwrap_or(f64::NAN)
    }

    /// The least; not a number if there is none.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::NAN)
    }

    /// The greatest; not a number if there is none.
    pub fn greatest(&self) -> f64 {
        self.0.iter().copied().max_by(f64::total_cmp).unwrap_or(f64::NAN)
    }

    /// All of it.
    pub fn json(&self) -> Value {
        json!({
            "median": self.median(),
            "least": self.least(),
            "greatest": self.greatest(),
            "rounds": self.0,
        })
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_ends_are_found() {
        let figures = |values: &[f64]| values.iter().copied().collect::<Figures>();
        assert_eq!(figures(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(figures(&[4.0, 3.0, 1.0, 2.0]).median(), 3.0);
        assert_eq!((figures(&[4.0, 3.0, 1.0, 2.0]).least(), figures(&[4.0, 3.0, 5.0, 2.0]).greatest()), (1.0, 5.0));
        assert!(figures(&[]).median().is_nan() && figures(&[]).least().is_nan());
        assert_eq!(figures(&[]).json(), json!({ "median": null, "least": null, "greatest": null, "rounds": [] }));
    }
}
