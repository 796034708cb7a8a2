//! The numbered scenarios.

use super::stage::{BUSY, FULL, Scene, TWO, passes};
use super::without::Whole;

#[test]
fn final_two_by_two() {
    passes::<Whole>(&TWO);
    passes::<Whole>(&Scene { quota: 1, ..TWO });
    passes::<Whole>(&Scene { answers: &[BUSY], ..TWO });
    passes::<Whole>(&Scene { answers: &[FULL], waker: true, ..TWO });
    passes::<Whole>(&Scene { producers: &[1, 1, 1], ..TWO });
    passes::<Whole>(&Scene { bypass: false, ..TWO });
}
