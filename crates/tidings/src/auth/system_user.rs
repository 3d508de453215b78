//! The user of the operating system that this process runs as.

/// His name, or his number where he has none: whoever the process runs as, whatever its environment says.
#[cfg(unix)]
pub(crate) fn system_user() -> String {
    let id = rustix::process::getuid().as_raw().to_string();
    // Without a name in this file the number says as much.
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, of) = (fields.next()?, fields.nth(1)?);
        (of == id).then(|| name.to_owned())
    });
    named.unwrap_or(id)
}

/// His name.
#[cfg(not(unix))]
pub(crate) fn system_user() -> String {
    std::env::var("USERNAME").unwrap_or_else(|_| "unknown".to_owned())
}
