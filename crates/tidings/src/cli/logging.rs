//! Log lines, to standard error. A line that is written while a request is served says whose it is.

use std::fmt;

use tidings_backbone::trace;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter,
    field::RecordFields,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{DefaultFields, Format, Full, Json, JsonFields, Writer},
        time::SystemTime,
    },
    registry::LookupSpan,
};

use crate::config::{LogFormat, Logging};

/// Installs the log for the process. One that is installed already stays.
pub(super) fn install(logging: &Logging) {
    let filter = EnvFilter::try_new(rules(&logging.level)).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let installed = match logging.format {
        LogFormat::Text => {
            let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(is_terminal).fmt_fields(TextFields(DefaultFields::new())).try_init()
        }
        LogFormat::Json => builder.json().event_format(JsonLine(json())).try_init(),
    };
    if let Err(error) = installed {
        tracing::debug!(%error, "the log is installed already");
    }
}

/// The client of Kafka tells every try to reach every broker, and so does, once for each pause, whoever waits
/// for it: only a rule that names the client lets it speak for itself.
fn rules(level: &str) -> String {
    if level.contains("rdkafka") { level.to_owned() } else { format!("{level},rdkafka=off,librdkafka=off") }
}

fn json() -> Format<Json, SystemTime> {
    Format::<Full>::default().json().flatten_event(true)
}

/// The fields of a line of text, and then those of the request.
#[derive(Debug)]
struct TextFields(DefaultFields);

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        // The formatter wants the writer for itself, so that it is not at hand behind it.
        let request = trace::current(|scope| {
            let trace = scope.context.map(|context| format!(" trace_id={}", context.trace_id));
            format!(" request_id={}{}", scope.request_id, trace.unwrap_or_default())
        });
        self.0.format_fields(writer.by_ref(), fields)?;
        request.map_or(Ok(()), |request| writer.write_str(&request))
    }
}

/// A line of JSON, with the fields of the request before its end.
#[derive(Debug)]
struct JsonLine(Format<Json, SystemTime>);

impl<S: Subscriber + for<'lookup> LookupSpan<'lookup>> FormatEvent<S, JsonFields> for JsonLine {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let request = trace::current(|scope| (scope.request_id.clone(), scope.context));
        let Some((request_id, traced)) = request else { return self.0.format_event(context, writer, event) };
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        let line = line.trim_end();
        // Ids of requests hold nothing that JSON would write otherwise.
        write!(writer, "{},\"request_id\":\"{request_id}\"", line.strip_suffix('}').unwrap_or(line))?;
        if let Some(traced) = traced {
            write!(writer, ",\"trace_id\":\"{}\"", traced.trace_id)?;
        }
        writer.write_str("}\n")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tidings_backbone::trace::{Context, Scope};
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    async fn logged(subscriber: impl Subscriber + Send + Sync + 'static, lines: &Lines) -> Vec<String> {
        let _guard = tracing::subscriber::set_default(subscriber);
        tracing::info!(what = "{}", "outside");
        let context: Option<Context> = Some(CONTEXT.parse().unwrap());
        for context in [None, context] {
            let scope = Scope { request_id: "request-7".into(), context };
            trace::within(scope, async { tracing::warn!(braces = "}}", "inside") }).await;
        }
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_line_of_text_ends_with_whose_it_is() {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false);
        let lines = logged(builder.fmt_fields(TextFields(DefaultFields::new())).finish(), &lines).await;
        assert!(!lines[0].contains("request_id"), "{lines:?}");
        assert!(lines[1].ends_with("inside braces=\"}}\" request_id=request-7"), "{lines:?}");
        let end = " request_id=request-7 trace_id=4bf92f3577b34da6a3ce929d0e0e4736";
        assert!(lines[2].ends_with(end), "{lines:?}");
    }

    #[tokio::test]
    async fn a_line_of_json_stays_an_object_and_says_whose_it_is() {
        let lines = Lines::default();
        let builder = tracing_subscriber::fmt().with_writer(lines.clone()).json().event_format(JsonLine(json()));
        let lines = logged(builder.finish(), &lines).await;
        let lines: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["message"], lines[0].get("request_id")), (&"outside".into(), None));
        assert_eq!((&lines[1]["request_id"], lines[1].get("trace_id")), (&"request-7".into(), None));
        assert_eq!((&lines[1]["braces"], &lines[1]["level"]), (&"}}".into(), &"WARN".into()));
        assert_eq!(lines[2]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    }
}
