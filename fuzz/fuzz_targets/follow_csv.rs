//! Whatever bytes a file of follows holds: reading it does not panic, lines come in rising order, a
//! follow is of two different users, and every line of the file is accounted for at most once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::follows_csv::{Columns, FollowsCsv};

fuzz_target!(|bytes: &[u8]| {
    let named = || Columns::Named { from: "a".to_owned(), to: "b".to_owned() };
    for columns in [Columns::Usual, named()] {
        let Ok(mut csv) = FollowsCsv::open(bytes, &columns).expect("memory can be read") else {
            continue;
        };
        let lines_max = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let mut before = 1;
        while let Some(line) = csv.read().expect("memory can be read") {
            assert!(line.number > before && line.number <= lines_max, "line {} after {before}", line.number);
            before = line.number;
            match line.follow {
                Ok(pair) => assert!(pair.from != pair.to && pair.from.get() >= 0 && pair.to.get() >= 0),
                Err(reason) => assert!(reason.to_string().chars().all(|c| !c.is_control())),
            }
        }
    }
});
