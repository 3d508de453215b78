//! What is read, what is refused with which reason, and that no bytes do harm.

use proptest::prelude::*;

use super::*;

fn usual(text: impl AsRef<[u8]>) -> FollowsCsv<io::Cursor<Vec<u8>>> {
    with(text, &Columns::Usual).unwrap()
}

fn with(text: impl AsRef<[u8]>, columns: &Columns) -> Result<FollowsCsv<io::Cursor<Vec<u8>>>, BadHeader> {
    FollowsCsv::open(io::Cursor::new(text.as_ref().to_vec()), columns).unwrap()
}

fn named(from: &str, to: &str) -> Columns {
    Columns::Named { from: from.to_owned(), to: to.to_owned() }
}

/// Line, follower, followed.
type Follow = (u64, i64, i64);
/// Line, reason.
type Bad = (u64, String);

/// The follows and the bad lines of a file.
fn all<R: BufRead>(mut csv: FollowsCsv<R>) -> (Vec<Follow>, Vec<Bad>) {
    let (mut follows, mut bad) = (Vec::new(), Vec::new());
    while let Some(line) = csv.read().unwrap() {
        match line.follow {
            Ok(pair) => follows.push((line.number, pair.from.get(), pair.to.get())),
            Err(reason) => bad.push((line.number, reason.to_string())),
        }
    }
    (follows, bad)
}

#[test]
fn plain_lines_are_follows() {
    let expected = (vec![(2, 1, 2), (3, 2, 1)], vec![]);
    for text in [
        "from,to\n1,2\n2,1\n",
        "from,to\n1,2\n2,1",
        "from,to\r\n1,2\r\n2,1\r\n",
        "\u{feff}from,to\n1,2\n2,1\n",
        "user_a,user_b\n1,2\n2,1\n",
        "to,from\n2,1\n1,2\n",
        "\"from\",\"to\"\n\"1\",\"2\"\n\"2\",1\n",
        "from , to\n 1,\t2 \n2 , 1\n",
        "since,to,note,from\n0,2,\"a, \"\"b\"\"\",1\nx,1,,2\n",
    ] {
        assert_eq!(all(usual(text)), expected, "{text:?}");
    }
}

#[test]
fn blank_lines_count_and_are_passed_over() {
    assert_eq!(all(usual("\n\nfrom,to\n\n1,2\n  \n\r\n2,1\n\n")).0, [(5, 1, 2), (8, 2, 1)]);
}

#[test]
fn named_columns_are_taken_wherever_they_are() {
    let text = "from,to,a,b\n9,9,1,2\n";
    assert_eq!(all(with(text, &named("a", "b")).unwrap()).0, [(2, 1, 2)]);
    assert_eq!(all(with(text, &named("b", "from")).unwrap()).0, [(2, 2, 9)]);
}

#[test]
fn a_header_that_does_not_tell_the_columns_is_refused() {
    for (text, columns, reason) in [
        ("", Columns::Usual, "no header line"),
        ("\n\n", Columns::Usual, "no header line"),
        ("1,2\n3,4\n", Columns::Usual, "data"),
        ("a,b,c\n1,2,3\n", Columns::Usual, "\"a\", \"b\", \"c\""),
        ("from,x,y\n", Columns::Usual, "neither"),
        ("from,to,to\n", Columns::Usual, "more than once"),
        ("a,b\n", named("a", "c"), "no column \"c\""),
        ("a,b\n", named("a", "a"), "the same column"),
        ("a,a,b\n", named("a", "b"), "more than once"),
        ("a,\"b\n1,2\n", Columns::Usual, "not closed"),
        (&"x".repeat(LINE_BYTES_MAX + 1), Columns::Usual, "longer than"),
        (&",".repeat(COLUMNS_MAX + 1), Columns::Usual, "more than 1024 columns"),
    ] {
        let message = with(text, &columns).unwrap_err().to_string();
        assert!(message.contains(reason), "{message}: expected {reason}");
    }
}

#[test]
fn every_bad_line_has_its_number_and_its_reason() {
    let long = "1".repeat(LINE_BYTES_MAX + 1);
    let lines = [
        (&b"1"[..], "1 columns, but the header has 2"),
        (b"1,2,3", "3 columns, but the header has 2"),
        (b"1,x", "\"x\" is not a user id"),
        (b"1,", "\"\" is not a user id"),
        (b"1,-2", "\"-2\" is not a user id"),
        (b"1,+2", "\"+2\" is not a user id"),
        (b"1,02", "\"02\" is not a user id"),
        (b"1,2.0", "\"2.0\" is not a user id"),
        (b"1,2\r3", "\"2\\r3\" is not a user id"),
        (b"1,\x1b[2J", "\"\\u{1b}[2J\" is not a user id"),
        ("1,２".as_bytes(), "\"２\" is not a user id"),
        (b"1,9223372036854775808", "\"9223372036854775808\" is out of range: the last user id is 9223372036854775807"),
        (b"7,7", "user 7 follows himself"),
        (b"1,\xff2", "\"\u{fffd}2\" is not UTF-8 text"),
        (b"1,\"2", "a quote is not closed"),
        (long.as_bytes(), "longer than 65536 bytes"),
        (b"\0,\0", "\"\\0\" is not a user id"),
    ];
    let mut text = b"from,to\n".to_vec();
    for (line, _) in lines {
        text.extend_from_slice(line);
        text.extend_from_slice(b"\n8,9\n");
    }
    let (follows, bad) = all(usual(text));
    let expected: Vec<_> =
        (2..).step_by(2).zip(lines).map(|(number, (_, reason))| (number, reason.to_owned())).collect();
    assert_eq!(bad, expected);
    // Each is followed by a good line: nothing that follows is lost.
    assert_eq!(follows, (3..).step_by(2).take(lines.len()).map(|number| (number, 8, 9)).collect::<Vec<_>>());
}

#[test]
fn a_long_wrong_value_is_shown_in_part() {
    let (_, bad) = all(usual(format!("from,to\n1,{}\n", "x".repeat(1_000))));
    assert_eq!(bad, [(2, format!("\"{}…\" is not a user id", "x".repeat(EXCERPT_CHARS_MAX)))]);
}

#[test]
fn a_line_of_the_limit_is_read_and_one_byte_more_is_not() {
    for (end, padding, is_read) in
        [("\n", 0, true), ("\r\n", 0, true), ("", 0, true), ("\n", 1, false), ("\r\n", 1, false), ("", 1, false)]
    {
        let line = format!("1,2,{}", "x".repeat(LINE_BYTES_MAX - 4 + padding));
        let (follows, bad) = all(usual(format!("from,to,x\n{line}{end}")));
        assert_eq!((follows.len(), bad.len()), if is_read { (1, 0) } else { (0, 1) }, "{end:?} {padding}");
        let (follows, _) = all(usual(format!("from,to,x\n{line}\n3,4,\n")));
        assert_eq!(follows.last(), Some(&(3, 3, 4)));
    }
}

#[test]
fn the_last_id_is_an_id() {
    assert_eq!(all(usual("from,to\n0,9223372036854775807\n")).0, [(2, 0, i64::MAX)]);
}

#[test]
fn an_error_of_reading_is_an_error_and_not_an_end() {
    struct Torn;
    impl io::Read for Torn {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
    let input = io::BufReader::new(io::Cursor::new("from,to\n1,2\n3,").chain(Torn));
    let mut csv = FollowsCsv::open(input, &Columns::Usual).unwrap().unwrap();
    assert!(csv.read().unwrap().unwrap().follow.is_ok());
    assert_eq!(csv.read().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

proptest! {
    #[test]
    fn any_bytes_give_rising_line_numbers_and_valid_pairs(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = [b"from,to\n".as_slice(), &bytes].concat();
        let lines_max = text.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let mut csv = usual(text);
        let mut before = 1;
        while let Some(line) = csv.read().unwrap() {
            prop_assert!(line.number > before && line.number <= lines_max);
            before = line.number;
            if let Ok(pair) = line.follow {
                prop_assert!(pair.from != pair.to && pair.from.get() >= 0 && pair.to.get() >= 0);
            }
        }
    }

    #[test]
    fn what_was_written_is_read_whatever_stands_between(
        follows in proptest::collection::vec((0..=i64::MAX, 0..=i64::MAX, "[ -~]{0,8}", any::<bool>()), 1..40),
        bad in proptest::collection::vec("[a-z\",]{1,12}", 1..5),
    ) {
        let mut text = "note,from,to\n".to_owned();
        let mut expected = Vec::new();
        let mut number = 1;
        for (place, (from, to, note, crlf)) in follows.iter().enumerate() {
            let note = note.replace('"', "\"\"");
            text.push_str(&format!("\"{note}\",{from},{to}{}", if *crlf { "\r\n" } else { "\n" }));
            number += 1;
            if from != to {
                expected.push((number, *from, *to));
            }
            if let Some(bad) = bad.get(place) {
                text.push_str(&format!("{bad}\n"));
                number += 1;
            }
        }
        prop_assert_eq!(all(usual(text)).0, expected);
    }
}
