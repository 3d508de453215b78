//! Headless Chromium by ChromeDriver, one pair per test: own port, own profile, gone at the end.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource, KeyAction, KeyActions},
    elements::Element,
};
use serde_json::{Value, json};
use tidings_testkit::Process;

/// How long the page may take to show what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const GLANCE: Duration = Duration::from_millis(50);

/// WebDriver's code points of the keys that a page must be usable with.
pub(crate) const TAB: char = '\u{E004}';
pub(crate) const ENTER: char = '\u{E007}';
pub(crate) const ESCAPE: char = '\u{E00C}';
pub(crate) const UP: char = '\u{E013}';
pub(crate) const DOWN: char = '\u{E015}';
pub(crate) const BACKSPACE: char = '\u{E003}';
const SHIFT: char = '\u{E008}';

/// A browser with one page. Dropping it ends the browser, also when a test panics.
pub(crate) struct Browser {
    client: Client,
    session: String,
    driver: Process,
    port: u16,
    // Chromium's profile: its storage and cookies are this test's alone.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one. Without Chromium there is nothing to prove the console by, so that is a failure.
    pub(crate) async fn start() -> Self {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0");
        let driver =
            Process::start(command, "the console is tested in Chromium: install `chromium` and `chromium-driver`");
        let line = driver.line_containing("started successfully on port");
        let port = line.rsplit(' ').next().unwrap().trim_end_matches('.').parse().unwrap();
        let profile = tempfile::tempdir().unwrap();
        let client = ClientBuilder::rustls()
            .unwrap()
            .capabilities(capabilities(profile.path()))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("ChromeDriver should start Chromium");
        let session = client.session_id().await.unwrap().unwrap();
        Self { client, session, driver, port, _profile: profile }
    }

    pub(crate) async fn open(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    pub(crate) async fn url(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    /// The element, as soon as it is there.
    pub(crate) async fn see(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).every(GLANCE).for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("`{css}` does not appear ({error}); the page says:\n{}", self.text().await),
        }
    }

    /// The element of this selector, as soon as its text is, or contains, what is given.
    pub(crate) async fn see_text(&self, css: &str, text: &str) {
        let script = "return [...document.querySelectorAll(arguments[0])]
            .some((element) => element.checkVisibility() && element.textContent.includes(arguments[1]))";
        self.until(script, vec![json!(css), json!(text)], &format!("`{css}` with “{text}”")).await;
    }

    /// Waits until a script answers true.
    pub(crate) async fn until(&self, script: &str, arguments: Vec<Value>, what: &str) {
        let looking = async {
            let mut glances = tokio::time::interval(GLANCE);
            while self.run(script, arguments.clone()).await != json!(true) {
                glances.tick().await;
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("{what} does not appear; the page says:\n{}", self.text().await);
        }
    }

    pub(crate) async fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute(script, arguments).await.unwrap()
    }

    /// What the page shows, for assertions and for the messages of failed ones.
    pub(crate) async fn text(&self) -> String {
        let text = self.run("return document.body.innerText", vec![]).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn click(&self, css: &str) {
        let element = self.see(css).await;
        // In the middle of the window: WebDriver alone may scroll it under the bar, which stays on top.
        let centre = "document.querySelector(arguments[0]).scrollIntoView({ block: 'center', behavior: 'instant' })";
        self.run(centre, vec![json!(css)]).await;
        element.click().await.unwrap();
    }

    /// Types into whatever has the focus, key by key.
    pub(crate) async fn type_keys(&self, keys: &str) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for value in keys.chars() {
            actions = actions.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        }
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Tab, backwards.
    pub(crate) async fn shift_tab(&self) {
        let actions = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: SHIFT })
            .then(KeyAction::Down { value: TAB })
            .then(KeyAction::Up { value: TAB })
            .then(KeyAction::Up { value: SHIFT });
        self.client.perform_actions(actions).await.unwrap();
    }

    /// As if the system's setting were this: "light" or "dark".
    pub(crate) async fn prefer(&self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// A picture of the window, into the build's folder; and for the README where it is asked for.
    pub(crate) async fn picture(&self, name: &str) {
        let png = self.client.screenshot().await.unwrap();
        let mut folders = vec![PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("console")];
        folders.extend(std::env::var_os("TIDINGS_SCREENSHOTS").map(PathBuf::from));
        for folder in folders {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("{name}.png")), &png).unwrap();
        }
    }

    /// Errors the browser logged since the last call, but for those that contain one of `expected`.
    pub(crate) async fn errors(&self, expected: &[&str]) -> Vec<String> {
        let log = self.driver_post("se/log", json!({ "type": "browser" })).await;
        let entries = log["value"].as_array().unwrap_or_else(|| panic!("no browser log: {log}"));
        let messages = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        messages
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .filter(|message| !expected.iter().any(|known| message.contains(known)))
            .collect()
    }

    async fn devtools(&self, command: &str, parameters: Value) {
        let answer = self.driver_post("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await;
        assert!(answer["value"].get("error").is_none(), "{command}: {answer}");
    }

    /// ChromeDriver's own commands, which WebDriver does not know.
    async fn driver_post(&self, command: &str, body: Value) -> Value {
        // A proxy of the environment cannot reach the driver.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("http://127.0.0.1:{}/session/{}/{command}", self.port, self.session);
        client.post(url).json(&body).send().await.unwrap().json().await.unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // ChromeDriver ends its Chromium when it is asked to go; killed, it would leave it behind.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let asked = stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            if asked.is_ok() && stream.set_read_timeout(Some(Duration::from_secs(5))).is_ok() {
                drop(stream.read_to_end(&mut Vec::new()));
            }
        }
        self.driver.end();
    }
}

fn capabilities(profile: &Path) -> serde_json::Map<String, Value> {
    // No sandbox, since tests run as root in containers; no calls home, which a closed network refuses.
    let flags = [
        "--headless=new",
        "--hide-scrollbars",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1360,900",
    ];
    let mut args: Vec<Value> = flags.iter().map(|flag| json!(flag)).collect();
    args.push(json!(format!("--user-data-dir={}", profile.display())));
    let capabilities = json!({
        "goog:chromeOptions": { "args": args },
        "goog:loggingPrefs": { "browser": "ALL" },
    });
    capabilities.as_object().cloned().unwrap()
}
