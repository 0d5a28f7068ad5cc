//! The log as etcd writes it, so that what reads etcd's reads this one: one JSON object a line with `level`, `ts`, `caller`,
//! `msg`, and what the line is about; or the same for people (etcd, `--log-format`).

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    filter::ParseError,
    fmt::{
        FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

use crate::config::{LogOutput, LogSettings};

/// Who logs: this node's crates, and openraft where it cannot go on; each call after its end, which has its own line, would be one of
/// those. Other libraries say nothing: strangers make them say it, a line for each connection, as long as a stranger likes.
fn filter(level: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("off,node={level},consensus={level},openraft=error,openraft::raft::raft_inner=off"))
}

/// Why nothing can be logged.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("--log-outputs: {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Level(#[from] ParseError),
}

/// Logs from now on.
///
/// # Errors
/// A file cannot be opened.
pub fn start(settings: &LogSettings) -> Result<(), LogError> {
    let outputs = Outputs::open(&settings.outputs)?;
    // Its own complaint about an output that cannot be written, as on a full disk, would be a panic.
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .event_format(EtcdLine { is_json: settings.is_json })
        .with_env_filter(filter(&settings.level)?)
        .with_writer(outputs)
        .init();
    Ok(())
}

/// A file is appended to, so that it may be cut short by whoever rotates it.
#[derive(Clone)]
enum Output {
    Stderr,
    Stdout,
    File(Arc<File>),
}

#[derive(Clone)]
struct Outputs(Arc<[Output]>);

impl Outputs {
    fn open(outputs: &[LogOutput]) -> Result<Self, LogError> {
        let open = |output: &LogOutput| match output {
            LogOutput::Stderr => Ok(Output::Stderr),
            LogOutput::Stdout => Ok(Output::Stdout),
            LogOutput::File(path) => OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(|file| Output::File(Arc::new(file)))
                .map_err(|source| LogError::File { path: path.clone(), source }),
        };
        Ok(Self(outputs.iter().map(open).collect::<Result<_, _>>()?))
    }
}

impl MakeWriter<'_> for Outputs {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Write for Outputs {
    /// To each of them. One that cannot be written keeps the others from nothing.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut outcome = Ok(());
        for output in &*self.0 {
            let written = match output {
                Output::Stderr => io::stderr().write_all(line),
                Output::Stdout => io::stdout().write_all(line),
                Output::File(file) => (&**file).write_all(line),
            };
            outcome = outcome.and(written);
        }
        outcome.map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// One line, as zap writes it for etcd.
struct EtcdLine {
    is_json: bool,
}

impl<S, N> FormatEvent<S, N> for EtcdLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (metadata, mut said) = (event.metadata(), Said::default());
        event.record(&mut said);
        let level = level(metadata.level());
        let mut now = String::new();
        SystemTime.format_time(&mut Writer::new(&mut now))?;
        let caller = format!("{}:{}", caller(metadata.file().unwrap_or_default()), metadata.line().unwrap_or_default());
        if !self.is_json {
            let rest = Value::Object(said.rest);
            return writeln!(writer, "{now}\t{level}\t{caller}\t{}\t{rest}", said.message);
        }
        let head = [("level", level.to_owned()), ("ts", now), ("caller", caller), ("msg", said.message)];
        writer.write_char('{')?;
        for (number, (key, text)) in head.into_iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(writer, "{comma}\"{key}\":{}", Value::String(text))?;
        }
        for (key, value) in said.rest {
            write!(writer, ",{}:{value}", Value::String(key))?;
        }
        writeln!(writer, "}}")
    }
}

fn level(level: &Level) -> &'static str {
    match *level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

/// The file with its folder, as zap has it.
fn caller(file: &str) -> &str {
    let mut slashes = file.rmatch_indices('/').map(|(at, _)| at + 1);
    slashes.nth(1).and_then(|at| file.get(at..)).unwrap_or(file)
}

/// What an event carries. A key that zap has for itself keeps its value under another name.
#[derive(Default)]
struct Said {
    message: String,
    rest: Map<String, Value>,
}

impl Said {
    fn put(&mut self, field: &Field, value: Value) {
        let name = match field.name() {
            "message" => {
                self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                return;
            }
            name @ ("level" | "ts" | "caller" | "msg") => format!("{name}_"),
            // etcd's names are written so.
            name => name.replace('_', "-"),
        };
        self.rest.insert(name, value);
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, consensus::with_causes(value).into());
    }
}
