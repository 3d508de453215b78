//! The limit of open files, as a server finds it.

use tidings_testkit::Process;

use super::folder::Folder;

#[cfg(unix)]
#[test]
fn the_limit_of_open_files_is_raised_and_connections_stay_below_it() {
    let folder = Folder::new();
    let serve = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    // The shell becomes the server, with limits of its own.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -Sn 100; ulimit -Hn 400; exec \"$0\" \"$@\" 2>&1"]);
    limited.arg(serve.get_program()).args(serve.get_args());
    let mut server = Process::start(limited, "there should be a shell");
    let said = server.line_containing("connections_max=");
    assert!(said.contains("connections_max=272") && said.contains("open_files_max=400"), "{said}");
    server.end();
}
