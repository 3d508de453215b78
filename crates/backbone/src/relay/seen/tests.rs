use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn of(numbers: impl IntoIterator<Item = u64>) -> Seen {
    let mut seen = Seen::default();
    numbers.into_iter().for_each(|number| seen.insert(number));
    seen
}

fn ranges(seen: &Seen) -> Vec<(u64, u64)> {
    seen.gaps().iter().map(|gap| (gap.from, gap.to)).collect()
}

fn age_ms() -> i64 {
    RELAY_GAP_AGE_MAX.as_millis() as i64
}

#[test]
fn a_late_lower_number_is_not_taken_for_one_that_was_published() {
    let seen = of([1, 2, 9, 10, 7]);
    assert_eq!((seen.max, ranges(&seen)), (10, vec![(3, 6), (8, 8)]));
    assert!(seen.contains(7) && !seen.contains(8) && !seen.contains(11));
}

#[test]
fn numbers_that_were_rolled_back_are_forgotten_in_the_end() {
    let mut seen = of([5]);
    seen.age(7);
    seen.insert(9);
    seen.age(7 + age_ms() - 1);
    assert_eq!(ranges(&seen), [(1, 4), (6, 8)]);
    seen.age(7 + age_ms());
    assert_eq!(ranges(&seen), [(6, 8)]);
    seen.age(7 + 2 * age_ms());
    assert!(seen.gaps().is_empty());
}

#[test]
fn every_seventh_number_is_one_entry_and_each_of_the_others_can_still_come() {
    let mut seen = of((0..100_000).map(|row| 3 + 7 * row));
    assert_eq!(seen.gaps().len(), 2);
    assert!(seen.contains(3 + 7 * 50_000) && !seen.contains(4 + 7 * 50_000));
    // Another server takes over that gives other numbers; and rows of it come late, between those of the first.
    (0..1_000).for_each(|row| seen.insert(4 + 7 * row));
    assert!(seen.contains(4 + 7 * 999) && !seen.contains(4 + 7 * 1_000) && !seen.contains(5));
    assert!(seen.gaps().len() <= 4, "{:?}", seen.gaps());
    assert!(serde_json::to_string(&seen).unwrap().len() < 400);
}

#[test]
fn however_many_numbers_were_rolled_back_what_is_whole_follows_within_the_age() {
    let (mut seen, mut number) = (Seen::default(), 1);
    let minute = 60_000;
    for at in 0..300 {
        for row in 0..200 {
            // Gaps of every length, so that no rule is in them.
            number += 2 + (row * row + at) % 13;
            seen.insert(number as u64);
        }
        seen.age(at * minute);
        assert!(seen.gaps().len() <= RELAY_GAPS_MAX && seen.samples.len() <= 62);
        let whole = seen.gaps().first().map_or(seen.max, |gap| gap.from);
        // What came in the last hour and a minute.
        let recent = 61 * 200 * 14;
        assert!(whole + recent >= seen.max, "{whole} of {}", seen.max);
    }
}

#[test]
fn a_checkpoint_of_before_can_be_read() {
    let text = r#"{"max": 9, "gaps": [{"from": 3, "to": 6, "since_ms": 1700000000000}]}"#;
    let seen: Seen = serde_json::from_str(text).unwrap();
    assert_eq!(ranges(&seen), [(3, 6)]);
    assert!(seen.contains(7) && !seen.contains(4));
}

/// Numbers in runs of one step each, in an order in which transactions may commit, each with the minutes that
/// pass before it.
fn commits() -> impl Strategy<Value = Vec<(u64, i64)>> {
    let run = (1_u64..9, 1_usize..120, 0_u64..50);
    let delays = proptest::collection::vec((0_usize..8, prop_oneof![20 => Just(0_i64), 1 => 1_i64..30]), 2_000);
    (proptest::collection::vec(run, 1..12), delays).prop_map(|(runs, delays)| {
        let (mut number, mut numbers) = (0, Vec::new());
        for (step, count, pause) in runs {
            number += pause;
            numbers.extend((0..count as u64).map(|row| number + 1 + row * step));
            number += 1 + step * count as u64;
        }
        let mut order: Vec<_> = numbers.iter().zip(&delays).enumerate().collect();
        order.sort_by_key(|(at, (_, (delay, _)))| at + delay);
        order.into_iter().map(|(_, (number, (_, minutes)))| (*number, *minutes)).collect()
    })
}

proptest! {
    #[test]
    fn nothing_that_was_not_published_counts_as_published(
        numbers in proptest::collection::hash_set(1_u64..5_000, 0..2_000)
    ) {
        let seen = of(numbers.iter().copied());
        prop_assert!(seen.gaps().len() <= RELAY_GAPS_MAX);
        prop_assert!(seen.gaps().windows(2).all(|pair| pair[0].to + 1 < pair[1].from));
        for number in 1..=5_001 {
            prop_assert!(!seen.contains(number) || numbers.contains(&number));
        }
    }

    #[test]
    fn what_was_published_counts_so_while_the_gaps_are_few(
        numbers in proptest::collection::vec(1_u64..200, 0..300)
    ) {
        let seen = of(numbers.iter().copied());
        for number in 1..=201 {
            prop_assert_eq!(seen.contains(number), numbers.contains(&number));
        }
    }

    #[test]
    fn whatever_steps_numbers_rise_in_none_is_lost_and_all_are_told_from_one_another_or_counted(
        commits in commits()
    ) {
        let (mut seen, mut come, mut now) = (Seen::default(), BTreeSet::new(), 0);
        let mut maxima = Vec::new();
        for (number, minutes) in commits {
            now += minutes * 60_000;
            seen.insert(number);
            come.insert(number);
            seen.age(now);
            maxima.push((now, seen.max));
            prop_assert!(seen.gaps().len() <= RELAY_GAPS_MAX);
        }
        let forgotten = maxima.iter().filter(|(at, _)| *at <= now - age_ms()).map(|(_, max)| *max).max().unwrap_or(0);
        for number in forgotten + 1..=seen.max {
            prop_assert!(!seen.contains(number) || come.contains(&number), "{number}");
        }
        for gap in seen.gaps() {
            let found = come.range(gap.from..=gap.to);
            match gap.known() {
                Known::Blur { come } => prop_assert_eq!(come, found.count() as u64),
                _ => for number in gap.from..=gap.to {
                    prop_assert_eq!(seen.contains(number), come.contains(&number));
                },
            }
        }
    }
}
