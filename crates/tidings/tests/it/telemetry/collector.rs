//! A collector of OpenTelemetry, which writes what it receives to a file.

use std::{fs, net::TcpListener, path::Path, process::Command, time::Duration};

use serde_json::Value;
use tidings_testkit::Process;

/// How long it may take until what was sent stands in the file.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_GAP: Duration = Duration::from_millis(50);
/// The status of a span of what went wrong, in OTLP.
const ERROR: u64 = 2;

/// A running collector. Dropping it ends it.
pub(super) struct Collector {
    port: u16,
    folder: tempfile::TempDir,
    _process: Process,
}

/// A span as the collector received it.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) parent: String,
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Trace and span of each.
    pub(super) links: Vec<(String, String)>,
    /// How many more it has to do with.
    pub(super) links_left_out: usize,
    /// What went wrong.
    pub(super) error: Option<String>,
    /// The role of the process that sent it.
    pub(super) role: String,
    pub(super) service: String,
    pub(super) attributes: Value,
}

impl Collector {
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let built = tokio::task::spawn_blocking(|| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/otelcol");
            let output = Command::new(script).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        });
        let program = built.await.unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (config, spans) = (folder.path().join("config.yaml"), folder.path().join("spans.json"));
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"127.0.0.1:{port}\"}}}}}}}}\n\
             exporters: {{file: {{path: \"{}\"}}}}\n\
             service: {{telemetry: {{metrics: {{level: none}}}}, \
                        pipelines: {{traces: {{receivers: [otlp], exporters: [file]}}}}}}\n",
            spans.display()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        command.arg("--config").arg(&config);
        let process = tokio::task::spawn_blocking(move || {
            let process = Process::start(command, "scripts/otelcol should have built the collector");
            process.wait_until_said("Everything is ready");
            process
        });
        Self { port, folder, _process: process.await.unwrap() }
    }

    /// Where it receives.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// All that it received, once that is enough.
    pub(super) async fn spans_until(&self, is_enough: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        for _ in 0..PATIENCE.as_millis() / LOOK_GAP.as_millis() {
            let spans = self.spans();
            if is_enough(&spans) {
                return spans;
            }
            tokio::time::sleep(LOOK_GAP).await;
        }
        panic!("the collector has received only {:#?}", self.spans());
    }

    fn spans(&self) -> Vec<Received> {
        let text = fs::read_to_string(self.folder.path().join("spans.json")).unwrap_or_default();
        // The last line may still be written.
        let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        requests.flat_map(|request| received(&request)).collect()
    }
}

fn received(request: &Value) -> Vec<Received> {
    let list = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let mut spans = Vec::new();
    for resource in list(request, "resourceSpans") {
        let attribute = |name: &str| {
            let found = list(&resource["resource"], "attributes").into_iter().find(|one| one["key"] == name);
            found.map(|one| one["value"]["stringValue"].as_str().unwrap_or_default().to_owned()).unwrap_or_default()
        };
        for span in list(&resource, "scopeSpans").iter().flat_map(|scope| list(scope, "spans")) {
            let text = |name: &str| span[name].as_str().unwrap_or_default().to_owned();
            let link = |link: &Value| {
                (link["traceId"].as_str().unwrap().to_owned(), link["spanId"].as_str().unwrap().to_owned())
            };
            spans.push(Received {
                trace_id: text("traceId"),
                span_id: text("spanId"),
                parent: text("parentSpanId"),
                name: text("name"),
                start: text("startTimeUnixNano").parse().unwrap(),
                end: text("endTimeUnixNano").parse().unwrap(),
                links: list(&span, "links").iter().map(link).collect(),
                links_left_out: span["droppedLinksCount"].as_u64().unwrap_or_default() as usize,
                error: (span["status"]["code"] == ERROR)
                    .then(|| span["status"]["message"].as_str().unwrap_or_default().to_owned()),
                role: attribute("tidings.role"),
                service: attribute("service.name"),
                attributes: span["attributes"].clone(),
            });
        }
    }
    spans
}
