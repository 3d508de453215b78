//! The command line: what can be asked, and who does it.

mod audit;
mod config;
mod events;
mod import;
mod journey;
mod lag;
mod logging;
mod login_link;
mod operator;
mod parked;
mod projector;
mod rebuild;
mod reconcile;
mod roles;
mod table;
mod token;
mod verify;

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use crate::{
    Result,
    config::Config,
    demo,
    serve::{self, Role},
};

/// A backend for social communities: a write commits once, as a row and an event; everything else
/// follows from the event.
#[derive(Debug, Parser)]
#[command(name = "tidings", version, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub struct Shared {
    /// Configuration file; overrides the defaults key by key
    #[arg(long, global = true, value_name = "FILE", env = "TIDINGS_CONFIG")]
    config: Option<PathBuf>,
    /// Data folder; overrides `data.dir`
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// What can be asked.
#[derive(Debug, Subcommand)]
enum Command {
    /// Serve: everything in one process
    Serve(ServeArgs),
    /// Serve the HTTP API alone; any number of processes, each on its own address
    Api(roles::ApiArgs),
    /// Carry committed events from the database to Kafka; one process works, further ones stand by
    ///
    /// With a `--config` file that has a `source`, it relays any outbox table of any MySQL or MariaDB to Kafka,
    /// Redis Streams, a webhook or the standard output, and needs nothing else of Tidings.
    Relay(roles::WorkArgs),
    /// Maintain projections from Kafka; processes share the work
    Project(roles::WorkArgs),
    /// Make a bearer token, printed alone on a line
    Token(token::TokenArgs),
    /// Print a new one-time link to log in to the console
    LoginLink(login_link::LoginLinkArgs),
    /// Import from files
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Compare every mirror row, list and counter with the facts
    Verify(verify::VerifyArgs),
    /// Show how far the relay and each projector are
    Lag(lag::LagArgs),
    /// Build a projection anew, beside the one that is read
    #[command(subcommand)]
    Rebuild(rebuild::RebuildCommand),
    /// Compare what follows from facts with them, and put right what differs
    Reconcile(reconcile::ReconcileArgs),
    /// Remove what is stored of a projector that is gone
    #[command(subcommand)]
    Projector(projector::ProjectorCommand),
    /// Look at events
    #[command(subcommand)]
    Events(events::EventsCommand),
    /// Show where one event is, and since when: committed, relayed, applied
    Journey(journey::JourneyArgs),
    /// Look at the keys that wait because an event of theirs failed, and decide about them
    #[command(subcommand)]
    Parked(parked::ParkedCommand),
    /// Show what operators did
    Audit(audit::AuditArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to listen on; overrides `http.listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<std::net::SocketAddr>,
    /// Load a generated community first if there is no data yet, and print commands to try
    #[arg(long)]
    demo: bool,
}

impl Cli {
    /// The exit status of an error. For a comparison, 1 means that it was done and found differences.
    pub fn failure(&self) -> ExitCode {
        match self.command {
            Command::Verify(_) => verify::COULD_NOT_VERIFY.into(),
            Command::Reconcile(_) => reconcile::COULD_NOT_RECONCILE.into(),
            _ => ExitCode::FAILURE,
        }
    }
}

impl Shared {
    /// The configuration in effect: defaults, file, environment, arguments.
    ///
    /// # Errors
    /// When a key is unknown or has a wrong value.
    pub fn load(&self) -> Result<Config> {
        let mut config = crate::config::load(self.config.as_deref(), crate::config::environment(std::env::vars_os())?)?;
        if let Some(data) = &self.data {
            config.data.dir.clone_from(data);
        }
        Ok(config)
    }
}

/// Does what was asked; answers the exit status.
///
/// # Errors
/// Whatever the command answers; [`crate::Error`] says what to do.
pub async fn run(cli: Cli) -> Result<ExitCode> {
    let Cli { mut shared, command } = cli;
    let alone = match &command {
        Command::Relay(_) => roles::alone(shared.config.as_deref())?,
        _ => None,
    };
    if alone.is_some() {
        // What else is configured comes from the environment.
        shared.config = None;
    }
    let mut config = shared.load()?;
    logging::install(&config.log);
    match command {
        Command::Serve(arguments) => {
            if let Some(listen) = arguments.listen {
                config.http.listen = listen;
            }
            if arguments.demo {
                demo::serve(config, shared.config.as_deref()).await?;
            } else {
                serve::serve(config, Role::All).await?;
            }
        }
        Command::Api(arguments) => roles::api(config, &arguments).await?,
        Command::Relay(arguments) => match alone {
            Some(alone) => roles::relay_alone(&alone, config, &arguments).await?,
            None => roles::relay(config, &arguments).await?,
        },
        Command::Project(arguments) => roles::project(config, &arguments).await?,
        Command::Token(arguments) => token::run(&config, &arguments).await?,
        Command::LoginLink(arguments) => login_link::run(&config, &arguments)?,
        Command::Import(command) => return import::run(&config, command).await,
        Command::Verify(arguments) => return verify::run(&config, &arguments).await,
        Command::Lag(arguments) => lag::run(&config, &arguments).await?,
        Command::Rebuild(command) => rebuild::run(&config, command).await?,
        Command::Reconcile(arguments) => return reconcile::run(&config, arguments).await,
        Command::Projector(command) => projector::run(&config, command).await?,
        Command::Events(command) => events::run(&config, command).await?,
        Command::Journey(arguments) => journey::run(&config, &arguments).await?,
        Command::Parked(command) => parked::run(&config, command).await?,
        Command::Audit(arguments) => audit::run(&config, &arguments).await?,
        Command::Config(command) => self::config::run(&config, &command)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line of result to standard output. What nobody reads any more, as in `| head`, need not be printed.
fn print(text: &str) -> Result<()> {
    put(&format!("{text}\n")).map(drop)
}

/// Writes to standard output; `Break` when its reader has gone away.
fn put(text: &str) -> Result<ControlFlow<()>> {
    use std::io::{ErrorKind, Write as _};
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(source) => Err(crate::Error::System { doing: "printing", source }),
    }
}
