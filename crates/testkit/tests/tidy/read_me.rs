//! The two READMEs say the same.

use crate::{check, workspace::read};

const FENCE: &str = "```";

/// What must be the same in every language.
#[derive(Default)]
struct Outline {
    /// The `#`s of each heading.
    levels: Vec<String>,
    /// Each fenced block, with its info string.
    blocks: Vec<String>,
}

#[test]
fn both_languages_have_the_same_outline() {
    let (english, chinese) = (outline("README.md"), outline("README.zh-CN.md"));
    let mut findings = Vec::new();
    if english.levels != chinese.levels {
        findings.push(format!(
            "README.zh-CN.md: the levels of its headings are {:?}, those of README.md {:?}",
            chinese.levels, english.levels
        ));
    }
    for (number, block) in english.blocks.iter().enumerate() {
        if chinese.blocks.get(number) != Some(block) {
            findings.push(format!("README.zh-CN.md: block {} must be, as in README.md:\n{block}", number + 1));
        }
    }
    if chinese.blocks.len() > english.blocks.len() {
        findings.push("README.zh-CN.md: it has blocks that README.md lacks".to_owned());
    }
    check("README.md and README.zh-CN.md change together.", findings);
}

fn outline(path: &str) -> Outline {
    let text = read(path);
    let mut outline = Outline::default();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            Some(lines) => {
                lines.push('\n');
                lines.push_str(line);
                if line == FENCE {
                    outline.blocks.extend(block.take());
                }
            }
            None if line.starts_with(FENCE) => block = Some(line.to_owned()),
            None if line.starts_with('#') => outline.levels.push(line.chars().take_while(|c| *c == '#').collect()),
            None => {}
        }
    }
    assert!(block.is_none(), "{path}: a fenced block is not closed");
    outline
}
