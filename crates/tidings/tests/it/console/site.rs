//! A Tidings server as its own process, on a fresh data folder, spoken to by HTTP and command line.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::spawned::Spawned;

pub(crate) struct Site {
    data: tempfile::TempDir,
    server: Option<Spawned>,
    address: String,
    http: reqwest::Client,
}

impl Site {
    /// Starts a server on a port of the system's choice.
    pub(crate) fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut site = Self { data, server: None, address: "127.0.0.1:0".to_owned(), http: reqwest::Client::new() };
        site.serve();
        site
    }

    /// Starts the server again where it was.
    pub(crate) fn serve(&mut self) {
        let mut command = self.tidings(&["serve"]);
        // The picture for the README takes more traffic than a person's bucket holds.
        command.env("TIDINGS__HTTP__LISTEN", &self.address).env("TIDINGS__RATE__FOLLOW_CAPACITY", "10000");
        let server = Spawned::start(command, "the server should start");
        let line = server.line_containing("http://127.0.0.1:");
        let (_, rest) = line.split_once("http://").unwrap();
        let address: String = rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
        self.address = address;
        self.server = Some(server);
    }

    /// Kills the server; the data stays.
    pub(crate) fn kill(&mut self) {
        self.server = None;
    }

    /// "http://127.0.0.1:PORT" with the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A fresh one-time link into the console.
    pub(crate) fn login_link(&self) -> String {
        let printed = self.run(&["login-link"]);
        let (_, rest) = printed.split_once("/login?link=").unwrap_or_else(|| panic!("no link in: {printed}"));
        let secret: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
        self.url(&format!("/login?link={secret}"))
    }

    pub(crate) fn admin_token(&self) -> String {
        self.run(&["token", "--admin"]).trim().to_owned()
    }

    pub(crate) fn user_token(&self, user_id: u32) -> String {
        self.run(&["token", "--user", &user_id.to_string()]).trim().to_owned()
    }

    /// Registers users 1, 2, ... with these handles.
    pub(crate) async fn register(&self, handles: &[&str]) {
        let token = self.admin_token();
        for (index, handle) in handles.iter().enumerate() {
            let body = json!({ "user_id": (index + 1).to_string(), "handle": handle });
            let request = self.http.post(self.url("/v1/admin/users")).bearer_auth(&token).json(&body);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 201, "{}", response.text().await.unwrap());
        }
    }

    /// Follows, or with `follow` false unfollows, as the bearer of a user's token.
    pub(crate) async fn relate(&self, token: &str, target: u32, follow: bool) {
        let url = self.url(&format!("/v1/me/following/{target}"));
        let request = if follow { self.http.put(url) } else { self.http.delete(url) };
        let response = request.bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    }

    /// The flow, once every projector has applied what is committed now.
    pub(crate) async fn settled(&self) -> Value {
        let url = self.url("/v1/admin/flow?settle_ms=20000");
        let response = self.http.get(url).bearer_auth(self.admin_token()).send().await.unwrap();
        let flow: Value = response.json().await.unwrap();
        assert_eq!(flow["settled"], true, "{flow}");
        flow
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.tidings(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tidings {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn tidings(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidings"));
        let data: PathBuf = self.data.path().join("data");
        command.args(arguments).arg("--data").arg(data);
        command
    }
}
