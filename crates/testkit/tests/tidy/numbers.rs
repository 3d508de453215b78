//! The house numbers.

use std::collections::BTreeMap;

use crate::{
    check,
    items::{functions, public_items, reach, test_regions},
    workspace::{Source, read, sources},
};

const FILE_LINES_MAX: usize = 600;
const FILE_LINES_P90_MAX: usize = 300;
const FILE_LINES_MEDIAN_MAX: usize = 150;
const FUNCTION_LINES_MAX: usize = 70;
const FUNCTION_LINES_P90_MAX: usize = 40;
/// Percent of the lines that are not blank. The aim is 12 to 20; the band leaves room for the day's work.
const COMMENT_PERCENT: std::ops::RangeInclusive<f64> = 10.0..=22.0;
const DOCUMENTED_PERCENT_MIN: f64 = 95.0;
/// Functions that are over the limit. An entry may shrink or go, never grow or come.
const LONG_FUNCTIONS: &str = "crates/testkit/tests/tidy/long-functions.txt";

#[test]
fn files_are_short() {
    let mut lines = Vec::new();
    let mut findings = Vec::new();
    for source in sources() {
        let count = source.text.lines().count();
        if count > FILE_LINES_MAX {
            findings.push(format!("{}: {count} lines; split it by what its parts know", source.path));
        }
        lines.push(count);
    }
    for (name, share, limit) in [("median", 0.5, FILE_LINES_MEDIAN_MAX), ("p90", 0.9, FILE_LINES_P90_MAX)] {
        let value = quantile(&mut lines, share);
        println!("lines of a file, {name}: {value} (at most {limit})");
        if value > limit {
            findings.push(format!("the {name} of all files is {value} lines; split the longest"));
        }
    }
    check(&format!("Files have at most {FILE_LINES_MAX} lines."), findings);
}

#[test]
fn functions_are_short() {
    let mut lines = Vec::new();
    let mut long = BTreeMap::new();
    for source in sources() {
        for function in functions(&source) {
            lines.push(function.lines);
            if function.lines > FUNCTION_LINES_MAX {
                let name = format!("{}::{}", source.path, function.name);
                long.insert(name, (function.lines, source.place(function.offset)));
            }
        }
    }
    let p90 = quantile(&mut lines, 0.9);
    println!("lines of a function, p90: {p90} (at most {FUNCTION_LINES_P90_MAX}); over the limit: {}", long.len());
    let mut findings = ratchet(&long);
    if p90 > FUNCTION_LINES_P90_MAX {
        findings.push(format!("the p90 of all functions is {p90} lines; give parts of the longest a name"));
    }
    check(&format!("Functions have at most {FUNCTION_LINES_MAX} lines."), findings);
}

/// Compares the functions over the limit with the list of those that are tolerated.
fn ratchet(long: &BTreeMap<String, (usize, String)>) -> Vec<String> {
    let listed = read(LONG_FUNCTIONS);
    let mut listed: BTreeMap<&str, usize> = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.rsplit_once(' ').and_then(|(name, lines)| Some((name, lines.parse().ok()?))))
        .map(|entry| entry.unwrap_or_else(|| panic!("a line of {LONG_FUNCTIONS} is `path::function lines`")))
        .collect();
    let mut findings = Vec::new();
    for (name, (lines, place)) in long {
        match listed.remove(name.as_str()) {
            None => findings.push(format!("{place}: `{name}` has {lines} lines; give its parts names of their own")),
            Some(tolerated) if *lines > tolerated => {
                findings.push(format!("{place}: `{name}` grew from {tolerated} to {lines} lines; it may only shrink"));
            }
            Some(tolerated) if *lines < tolerated => {
                findings.push(format!("{place}: `{name}` shrank; write {lines} for {tolerated} in {LONG_FUNCTIONS}"));
            }
            Some(_) => {}
        }
    }
    findings.extend(listed.keys().map(|name| format!("`{name}` is short or gone; take it out of {LONG_FUNCTIONS}")));
    findings
}

#[test]
fn comments_have_their_share() {
    let (mut comments, mut lines, mut test_lines) = (0, 0, 0);
    for source in sources() {
        let tests = test_regions(&source);
        let mut offset = 0;
        for (text, code) in source.text.lines().zip(source.code.lines()) {
            if !text.trim().is_empty() {
                lines += 1;
                comments += usize::from(code.trim().is_empty() && text.trim_start().starts_with("//"));
                let is_test = source.is_test() || tests.iter().any(|region| region.contains(&offset));
                test_lines += usize::from(is_test);
            }
            offset += text.len() + 1;
        }
    }
    let percent = |part: usize| part as f64 * 100.0 / lines as f64;
    println!("lines: {lines}, of them in tests {:.1} % (aim: 45 to 55)", percent(test_lines));
    let comments = percent(comments);
    println!("lines that are comments: {comments:.1} % (aim: 12 to 20)");
    let finding = format!(
        "{comments:.1} % of the lines are comments, outside {COMMENT_PERCENT:?}: say why where it is not plain, \
         and delete what repeats the code"
    );
    let is_fine = COMMENT_PERCENT.contains(&comments);
    check("Comments say why, in 12 to 20 % of the lines.", Vec::from_iter((!is_fine).then_some(finding)));
}

#[test]
fn public_items_of_the_libraries_are_documented() {
    for room in ["event", "backbone"] {
        let sources: Vec<Source> =
            sources().into_iter().filter(|source| source.path.starts_with(&format!("crates/{room}/src/"))).collect();
        let mut items = 0;
        let mut findings = Vec::new();
        for source in &sources {
            for item in public_items(source) {
                items += 1;
                if !item.documented {
                    findings.push(format!("{}: `{}`", source.place(item.offset), item.declaration));
                }
            }
            let is_public_page = source.text.starts_with("//!");
            if !is_public_page {
                findings.push(format!("{}:1: begin the file with `//!` and what it is for", source.path));
                items += 1;
            }
        }
        let percent = 100.0 - findings.len() as f64 * 100.0 / items as f64;
        println!("public items of `{room}` with documentation: {percent:.1} % of {items}");
        if percent < DOCUMENTED_PERCENT_MIN {
            check(&format!("At least {DOCUMENTED_PERCENT_MIN} % of `{room}` is documented."), findings);
        }
    }
}

#[test]
fn nothing_unwraps_outside_tests_and_named_invariants() {
    let mut findings = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let mut exempt = test_regions(source);
        for lint in ["#[expect(clippy::unwrap_used", "#[expect(clippy::expect_used"] {
            exempt.extend(source.code.match_indices(lint).map(|(offset, _)| reach(&source.code, offset)));
        }
        for call in [".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("] {
            for (offset, _) in source.code.match_indices(call) {
                if !exempt.iter().any(|region| region.contains(&offset)) {
                    findings.push(format!("{}: `{call}`: return an error", source.place(offset)));
                }
            }
        }
    }
    let rule = "An error is returned; what cannot fail says so with \
                `#[expect(clippy::expect_used, reason = \"why it cannot\")]`.";
    check(rule, findings);
}

/// The smallest value that `share` of the values do not exceed.
fn quantile(values: &mut [usize], share: f64) -> usize {
    values.sort_unstable();
    let rank = (values.len() as f64 * share).ceil() as usize;
    values[rank.saturating_sub(1)]
}
