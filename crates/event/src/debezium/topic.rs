//! Topics, made as Kafka's `RegexRouter` makes them.

use regex::{Captures, Regex};

use crate::Error;

/// A pattern for the whole of a text, and what it is replaced by.
#[derive(Clone, Debug)]
pub(super) struct TopicPattern {
    whole: Regex,
    first: Regex,
    replacement: Vec<Part>,
}

/// A part of a replacement in Java's notation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Group(usize),
}

impl TopicPattern {
    pub(super) fn new(pattern: &str, replacement: &str) -> Result<Self, Error> {
        let compile = |text: &str| {
            Regex::new(text).map_err(|source| Error::Pattern { pattern: pattern.to_owned(), source: Box::new(source) })
        };
        let first = compile(pattern)?;
        let replacement = parts(replacement, &first).ok_or_else(|| {
            Error::option("route.topic.replacement", "refers to no group of the pattern, or ends in the middle of one")
        })?;
        Ok(Self { whole: compile(&format!(r"\A(?:{pattern})\z"))?, first, replacement })
    }

    /// What does not match as a whole stays as it is; otherwise the first match in it is replaced.
    pub(super) fn apply(&self, text: &str) -> String {
        let found = self.whole.is_match(text).then(|| self.first.captures(text)).flatten();
        let Some((captures, place)) = found.and_then(|captures| captures.get(0).map(|place| (captures, place))) else {
            return text.to_owned();
        };
        let mut topic = text[..place.start()].to_owned();
        self.replacement.iter().for_each(|part| part.write(&captures, &mut topic));
        topic.push_str(&text[place.end()..]);
        topic
    }
}

impl Part {
    fn write(&self, captures: &Captures<'_>, topic: &mut String) {
        match self {
            Self::Text(text) => topic.push_str(text),
            // A group that took no part is empty.
            Self::Group(number) => topic.push_str(captures.get(*number).map_or("", |group| group.as_str())),
        }
    }
}

/// Reads a replacement as `Matcher.appendReplacement` does: `$1` and `${name}` are groups, a backslash
/// takes away the meaning of what follows it. Nothing where a group does not exist.
fn parts(replacement: &str, pattern: &Regex) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = match letter {
            '\\' => Part::Text(letters.next()?.to_string()),
            '$' if letters.next_if_eq(&'{').is_some() => {
                let name: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                Part::Group(pattern.capture_names().position(|group| group == Some(name.as_str()))?)
            }
            '$' => {
                let digit = |letter: char| letter.to_digit(10).map(|digit| digit as usize);
                let mut number = digit(letters.next()?)?;
                // Further digits belong to the number as long as there is such a group.
                while let Some(longer) = letters.peek().and_then(|next| Some(number * 10 + digit(*next)?))
                    && longer < pattern.captures_len()
                {
                    number = longer;
                    letters.next();
                }
                Part::Group((number < pattern.captures_len()).then_some(number)?)
            }
            letter => Part::Text(letter.to_string()),
        };
        match (parts.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
            (_, part) => parts.push(part),
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(pattern: &str, replacement: &str, text: &str) -> String {
        TopicPattern::new(pattern, replacement).unwrap().apply(text)
    }

    #[test]
    fn replacements_mean_what_they_mean_in_java() {
        assert_eq!(topic("(?<routedByValue>.*)", "outbox.event.${routedByValue}", "Order"), "outbox.event.Order");
        assert_eq!(topic("(.*)-(.*)", "$2.$1$$1".replace("$$", r"\$").as_str(), "a-b"), "b.a$1");
        assert_eq!(topic("(.*)", "$12", "a"), "a2", "there is no group 12");
        assert_eq!(topic("(.*)", "$0/$1", "a"), "a/a");
        assert_eq!(topic("(x)?(.*)", "[$1]$2", "a"), "[]a");
        assert_eq!(topic("a|ab", "x", "ab"), "xb", "matched as a whole, replaced where first found");
        assert_eq!(topic("orders", "x", "order"), "order", "what does not match stays");
        assert_eq!(topic("(?i)ORDER", "päck", "order"), "päck");
    }

    #[test]
    fn groups_that_do_not_exist_are_refused() {
        for replacement in ["$2", "${other}", "${", "$", "\\", "$x"] {
            assert!(matches!(TopicPattern::new("(.*)", replacement), Err(Error::Option { .. })), "{replacement}");
        }
        assert!(matches!(TopicPattern::new("(?=a)", ""), Err(Error::Pattern { .. })));
    }
}
