//! Commands to try, printed so that they work when they are copied into a shell in any folder.

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, absolute},
};

use tidings_backbone::log::Offset;
use tidings_community::{UserId, user::read};

use crate::{Error, Result, serve::base, store::Store};

/// Events looked through for two users, when those of the demo are not there.
const EVENTS_LOOKED_AT: usize = 1_000;

/// Three commands for a server at `address`: by the first user, about the demo's `celebrity`.
pub(super) async fn of(
    store: &Store,
    address: SocketAddr,
    config_file: Option<&Path>,
    celebrity: Option<UserId>,
) -> Result<[String; 3]> {
    let (me, other) = two_users(store, celebrity).await?;
    let program = std::env::current_exe().map_err(|source| Error::System { doing: "finding this program", source })?;
    let mut token = format!("{} token --user {me} --data {}", word(&program)?, word(store.folder())?);
    if let Some(file) = config_file {
        token.push_str(&format!(" --config {}", word(file)?));
    }
    Ok(written(&token, &base(address), other))
}

fn written(token: &str, base: &str, other: UserId) -> [String; 3] {
    let bearer = format!("-H \"Authorization: Bearer $({token})\"");
    [
        format!("curl -X PUT {bearer} {base}/v1/me/following/{other}"),
        format!("curl {bearer} \"{base}/v1/users/{other}/followers?limit=3\""),
        format!("curl {bearer} {base}/v1/users/{other}/counters"),
    ]
}

pub(super) fn announce(commands: &[String]) -> Result<()> {
    let text = format!(
        "\nTo try in another shell: follow somebody, see who follows them, see their counters.\n\n{}\n\n",
        commands.join("\n")
    );
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|source| Error::System { doing: "printing commands", source })
}

/// User 1 and the celebrity, as the demo has them; in a folder with other data the first two that the
/// log tells of.
async fn two_users(store: &Store, celebrity: Option<UserId>) -> Result<(UserId, UserId)> {
    let first = user(1)?;
    let other = celebrity.filter(|user| *user != first).map_or_else(|| user(2), Ok)?;
    let mut tx = store.db.read().await?;
    let found = read::handles(&mut tx.conn(), &[first, other]).await?;
    tx.rollback().await?;
    if found.len() == 2 {
        return Ok((first, other));
    }
    let events = store.log().read(Offset(0), EVENTS_LOOKED_AT).await?;
    let registered = events.iter().filter(|recorded| recorded.event.event_type == "account.registered");
    let mut users = registered.filter_map(|recorded| recorded.event.aggregate_id.parse().ok());
    Ok((users.next().unwrap_or(first), users.next().unwrap_or(other)))
}

fn user(id: i64) -> Result<UserId> {
    UserId::try_from(id).map_err(|error| Error::Usage(error.to_string()))
}

/// A path as one word of a shell.
fn word(path: &Path) -> Result<String> {
    let path = absolute(path).map_err(Error::file("making absolute", path))?;
    Ok(quoted(&path.to_string_lossy()))
}

fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_every_path_as_it_is() {
        for path in ["/usr/bin/tidings", "/my files/it's \"here\"", "/a$HOME`x`\\", "/艾达/*?;&|"] {
            let script = format!("printf %s \"x$(printf %s {})\"", quoted(path));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("x{path}"));
        }
    }

    #[test]
    fn every_command_is_one_line_that_begins_with_curl() {
        let commands = written("tidings token --user 1", "http://127.0.0.1:7870", user(2).unwrap());
        assert_eq!(
            commands[0],
            "curl -X PUT -H \"Authorization: Bearer $(tidings token --user 1)\" \
             http://127.0.0.1:7870/v1/me/following/2"
        );
        assert!(commands.iter().all(|command| command.starts_with("curl ") && !command.contains('\n')));
    }
}
