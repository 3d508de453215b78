//! Whatever rows a server writes, they are read as they were.

use proptest::prelude::*;
use tidings_binlog::{Decoder, Event, EventType, Flavor};

use crate::{
    model::{Cell, ModelCells, bitmap, column, image, table_map},
    samples::line,
    streams::header,
};

/// Rows of one event: columns with their values, and which columns each image has.
fn rows() -> impl Strategy<Value = (Vec<ModelCells>, Vec<bool>, Vec<bool>, usize)> {
    (1usize..20, 1usize..6).prop_flat_map(|(columns, rows)| {
        let bits = || prop_oneof![Just(vec![true; columns]), prop::collection::vec(any::<bool>(), columns)];
        // An update takes two values of each column for a row.
        (prop::collection::vec(column(rows * 2), columns), bits(), bits(), Just(rows))
    })
}

fn row(columns: &[ModelCells], number: usize) -> Vec<Option<&Cell>> {
    columns.iter().map(|(_, cells)| cells[number].as_ref()).collect()
}

proptest! {
    #[test]
    fn rows_are_read_as_they_were_written(
        (columns, first, second, count) in rows(),
        change in 0usize..3,
        version in 0usize..3,
    ) {
        prop_assume!(first.contains(&true) && second.contains(&true));
        let mut expected = Vec::new();
        let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0];
        if version == 2 {
            // The length of the extra data with itself, and a kind that is not known.
            body.extend([5, 0, 0xee, 1, 2]);
        }
        body.push(columns.len() as u8);
        body.extend(bitmap(first.iter().copied()));
        if change == 1 {
            body.extend(bitmap(second.iter().copied()));
        }
        for number in 0..count {
            let (before, text) = image(&row(&columns, number * 2), &first);
            body.extend(before);
            expected.push(match change {
                0 => format!("+ {text}"),
                1 => {
                    let (after, after_text) = image(&row(&columns, number * 2 + 1), &second);
                    body.extend(after);
                    format!("~ {text} => {after_text}")
                }
                _ => format!("- {text}"),
            });
        }
        let event_type = EventType([20, 23, 30][version] + change as u8);
        let columns: Vec<_> = columns.into_iter().map(|(column, _)| column).collect();
        let map = table_map(&columns);
        let mut decoder = Decoder::new(Flavor::Mariadb);
        decoder.decode_inner(&header(EventType::TABLE_MAP, map.len()), &map).unwrap();
        let event = decoder.decode_inner(&header(event_type, body.len()), &body).unwrap();
        let Event::Rows(rows) = event else {
            panic!("no rows: {event:?}");
        };
        let lines: Vec<String> = rows.reader().map(|row| line(&rows, &row.unwrap())).collect();
        prop_assert_eq!(lines, expected);
    }
}
