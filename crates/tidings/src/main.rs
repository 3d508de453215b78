//! The `tidings` binary: parse, hand over, say what went wrong.

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match tidings::cli::run(tidings::cli::Cli::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", tidings_backbone::Error::chain(&error));
            ExitCode::FAILURE
        }
    }
}
