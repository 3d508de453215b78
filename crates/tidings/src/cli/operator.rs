//! Who sits at the command line, and whether he means what he asked for.

use std::io::{self, IsTerminal as _, Write as _};

use tidings_backbone::audit::Actor;

use crate::{Error, Result, auth::system_user};

/// The user of the operating system, for the audit: whoever the process runs as, whatever its environment says.
pub(super) fn actor() -> Actor {
    Actor::new(&format!("cli:{}", system_user()))
}

/// Asks whether to do what was just shown. Whoever cannot be asked has to say `--yes` beforehand.
///
/// # Errors
/// When nobody is there to be asked, or the answer is no: then nothing is done.
pub(super) fn confirm(what: &str) -> Result<()> {
    if !io::stdin().is_terminal() {
        return Err(Error::Usage(format!("{what} needs `--yes`, since nobody is there to be asked")));
    }
    let asked = |source| Error::System { doing: "asking", source };
    let mut answer = String::new();
    let mut err = io::stderr().lock();
    write!(err, "{what}? Type `yes` to do it: ").and_then(|()| err.flush()).map_err(asked)?;
    io::stdin().read_line(&mut answer).map_err(asked)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::Usage("nothing was done".to_owned())) }
}

/// A number of things: "1 key", "2 keys".
pub(super) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Texts of applications on one line, without anything that a terminal obeys.
pub(super) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// The same, with its middle left out where it is too long for a table: of an error, the first words say what was
/// being done, and the last ones why it failed.
pub(super) fn short(text: &str, chars_max: usize) -> String {
    let chars: Vec<char> = harmless(text).chars().collect();
    if chars.len() <= chars_max {
        return chars.into_iter().collect();
    }
    let kept = chars_max.saturating_sub(1);
    let (begin, end) = (&chars[..kept / 3], &chars[chars.len() - (kept - kept / 3)..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_short_and_harmless() {
        assert_eq!(short("abc", 3), "abc");
        assert_eq!(short("abcdefghij", 7), "ab…ghij");
        assert_eq!(short("a\u{1b}[2J", 9), "a\u{fffd}[2J");
    }

    #[test]
    fn the_actor_is_a_user_of_the_system() {
        assert!(actor().as_str().starts_with("cli:") && actor().as_str().len() > 4);
    }
}
