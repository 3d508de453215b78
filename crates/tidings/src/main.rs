//! The `tidings` binary: parse, hand over, say what went wrong.

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    // The fail points that the variable FAILPOINTS names; no build but those for crash tests has any.
    #[cfg(feature = "failpoints")]
    let _points = fail::FailScenario::setup();
    let cli = tidings::cli::Cli::parse();
    let failure = cli.failure();
    match tidings::cli::run(cli).await {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {}", tidings_backbone::Error::chain(&error));
            failure
        }
    }
}
