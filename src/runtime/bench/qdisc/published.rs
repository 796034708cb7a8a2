//! What was published of the Linux qdisc that ours is modelled on, to hold the shapes against each other.
//!
//! pktgen in its mode `queue_xmit` on a dummy device, packets one by one, one kernel thread per core; the machines are not
//! stated. Only ratios to one thread can be compared.

/// What a change did.
#[derive(Debug)]
pub(super) struct Published {
    /// Year, month, day.
    pub date: &'static str,
    /// Of the mail or the patch.
    pub subject: &'static str,
    /// Threads; before and after the change, million packets per second of all threads together.
    pub rows: &'static [(usize, [f64; 2])],
}

impl Published {
    /// What so many threads sent before the change (0) or after it (1), as a multiple of what one did.
    pub fn ratio(&self, column: usize, threads: usize) -> Option<f64> {
        let of = |threads| Some(self.rows.iter().find(|row| row.0 == threads)?.1[column]);
        Some(of(threads)? / of(1)?)
    }
}

/// All, the newest first.
pub(super) const PUBLISHED: [Published; 6] = [
    Published {
        date: "2021-05-28",
        subject: "implement TCQ_F_CAN_BYPASS for lockless qdisc",
        rows: &[(1, [2.60, 3.21]), (2, [3.84, 5.56]), (4, [5.52, 5.58]), (8, [2.77, 2.76]), (16, [2.24, 2.23])],
    },
    Published {
        date: "2021-05-28",
        subject: "the same, in discussion: no second test under the lock",
        rows: &[(1, [3.21, 3.20]), (2, [5.56, 5.94]), (4, [5.58, 5.60]), (8, [2.76, 2.77]), (16, [2.23, 2.23])],
    },
    Published {
        date: "2021-05-28",
        subject: "the same, in discussion: and DRAINING set before MISSED is cleared",
        rows: &[(1, [3.21, 3.20]), (2, [5.56, 5.94]), (4, [5.58, 5.02]), (8, [2.76, 2.77]), (16, [2.23, 2.23])],
    },
    Published {
        date: "2021-05-13",
        subject: "v7: fix packet stuck problem for lockless qdisc",
        rows: &[(1, [2.61, 2.60]), (2, [3.97, 3.82]), (4, [5.62, 5.59]), (8, [2.78, 2.77]), (16, [2.22, 2.22])],
    },
    Published {
        date: "2021-03-23",
        subject: "RFC v3: implement TCQ_F_CAN_BYPASS for lockless qdisc",
        rows: &[(1, [2.56, 3.11]), (2, [3.76, 4.31]), (4, [5.51, 5.53]), (8, [2.81, 2.72]), (16, [2.24, 2.22])],
    },
    Published {
        date: "2016-07",
        subject: "RFC v2 08/10: pfifo_fast on lock-free queues (skb_array)",
        rows: &[
            (1, [1.418_168, 1.269_450]),
            (2, [1.587_390, 1.553_408]),
            (4, [1.084_961, 1.683_639]),
            (8, [0.989_636, 1.522_723]),
            (12, [1.014_018, 1.348_172]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed beside the figures: per cent of change, or the difference in packets per second.
    const PRINTED: [&[f64]; 6] = [
        &[23.0, 44.0, 1.0, -0.3, -0.4],
        // Printed is 4.9 for two threads, which is not what the figures say.
        &[-0.3, 6.8, 0.3, 0.3, 0.0],
        &[-0.3, 6.8, -10.0, 0.3, 0.0],
        &[-0.4, -3.8, -0.5, -0.4, 0.0],
        &[21.0, 14.0, 0.3, -3.0, -0.8],
        &[-148_718.0, -33_982.0, 598_678.0, 533_087.0, 334_154.0],
    ];

    /// The sums of both columns.
    const SUMS: [[f64; 2]; 6] =
        [[16.97, 19.34], [19.34, 19.74], [19.34, 19.16], [17.20, 17.00], [16.88, 17.89], [6.094_173, 7.377_392]];

    #[test]
    fn the_figures_are_those_that_were_printed() {
        for ((table, printed), sums) in PUBLISHED.iter().zip(PRINTED).zip(SUMS) {
            let is_2016 = table.date == "2016-07";
            for ((threads, [one, other]), printed) in table.rows.iter().zip(printed) {
                let (change, tolerance) = match is_2016 {
                    true => ((other - one) * 1e6, 0.5),
                    false => ((other / one - 1.0) * 100.0, if printed.abs() > 9.0 { 1.0 } else { 0.3 }),
                };
                assert!((change - printed).abs() < tolerance, "{} {threads}: {change}, {printed}", table.subject);
            }
            for (column, sum) in sums.into_iter().enumerate() {
                let found: f64 = table.rows.iter().map(|row| row.1[column]).sum();
                assert!((found - sum).abs() < 1e-6, "{} {column}: {found}, {sum}", table.subject);
            }
            assert_eq!(table.rows.len(), 5);
        }
    }

    #[test]
    fn shapes_are_ratios_to_one_thread() {
        let [bypass, .., locked] = &PUBLISHED;
        assert!((bypass.ratio(1, 2).unwrap() - 1.732).abs() < 0.001);
        assert_eq!(bypass.ratio(0, 1), Some(1.0));
        assert_eq!(bypass.ratio(0, 12), None);
        assert!((locked.ratio(0, 12).unwrap() - 0.715).abs() < 0.001);
    }
}
