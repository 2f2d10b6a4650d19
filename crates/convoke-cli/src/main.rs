//! The `convoke` command: parses, settles the settings, dispatches, prints what went wrong once, and exits
//! with the documented code. It decides nothing else.

mod again;
mod args;
mod catalog;
mod checkpoints;
mod commands;
mod confine;
mod doc_test;
mod escape;
mod estimate;
mod failure;
mod feed;
mod gate;
mod greeting;
mod keeping;
mod lead;
mod memory;
mod named;
mod open;
mod paths;
mod questions;
mod render;
mod report;
mod reuse;
mod settings;
mod shipped;
mod signals;
mod stdio;
mod utc;
mod work;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, SessionsCommand, WorkflowCommand};
use crate::doc_test::DocTest;
use crate::failure::{Exit, Failure};
use crate::settings::{Environment, Settings};

fn main() -> ExitCode {
    // Before any thread exists: this executable is also the helper under which commands live.
    convoke_runtime::helper_entry();
    convoke_terminal::guard_entry();
    // The helper begins anew by itself; here, keys are in the environment and in memory.
    convoke_sandbox::forbid_inspection();
    if let Some(exit) = commands::complete::answer() {
        return exit;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            stdio::settle(None);
            stdio::complain(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8));
        }
    };
    // A failure before the settings are settled is made harmless for a CI runner too.
    stdio::settle(None);
    match start(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            stdio::tell(&failure.render());
            failure.code.into()
        }
    }
}

fn start(cli: Cli) -> Result<Exit, Failure> {
    let environment = Environment::of_this_process();
    // `DOC_TEST_MODE` is about single tasks, so it opens no session in the terminal.
    let has_person = stdio::has_person() && environment.get(settings::DOC_TEST_MODE).is_none();
    let (globals, mut command) = cli.split(has_person)?;
    match &command {
        Command::Completions(args) => return commands::completions::run(args),
        Command::Man(args) => return commands::man::run(args),
        _ => {}
    }
    let here = std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current directory cannot be used: {error}")))?;
    let mut settings = Settings::resolve(&globals, &environment, &here)?;
    stdio::settle(settings.ci_safe);
    match &mut command {
        Command::Run(args) => args.flags.end.check(&here, &settings.dir)?,
        Command::Resume(args) => args.end.check(&here, &settings.dir)?,
        Command::Sessions(SessionsCommand::Retry(args)) => args.end.check(&here, &settings.dir)?,
        Command::Workflow(WorkflowCommand::Run(args)) => args.end.check(&here, &settings.dir)?,
        _ => {}
    }
    // Commands that only look are meant for the real journal.
    let drives =
        matches!(command, Command::Run(_) | Command::Resume(_) | Command::Workflow(WorkflowCommand::Run(_)));
    // It is removed when everything below has ended.
    let doc_test = (settings.doc_test && drives).then(DocTest::new).transpose()?;
    if let Some(places) = &doc_test {
        settings.move_to(places.dir(), places.own());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("the asynchronous runtime cannot be started: {error}")))?;
    runtime.block_on(async {
        let begins = matches!(command, Command::Run(_) | Command::Workflow(WorkflowCommand::Run(_)));
        if begins || matches!(command, Command::Session(_)) {
            settings.ask_server(begins).await;
        }
        dispatch(&settings, command).await
    })
}

async fn dispatch(settings: &Settings, command: Command) -> Result<Exit, Failure> {
    let command = match command {
        Command::Run(args) => commands::workflow::meant(settings, args).await?,
        command => command,
    };
    match command {
        Command::Session(args) => commands::session::run(settings, args).await,
        Command::Run(args) => commands::run::run(settings, args).await,
        Command::Resume(args) => commands::resume::run(settings, args).await,
        Command::Sessions(command) => commands::sessions::run(settings, &command).await,
        Command::Approvals(command) => commands::approvals::run(settings, &command).await,
        Command::Worktrees(command) => commands::worktrees::run(settings, &command).await,
        Command::Workflow(command) => commands::workflow::run(settings, command).await,
        Command::Team(command) => commands::team::run(settings, command).await,
        Command::Tasks(command) => commands::tasks::run(settings, command).await,
        Command::Mail(command) => commands::mail::run(settings, command).await,
        Command::Export(args) => commands::export::run(settings, &args).await,
        Command::Cost(args) => commands::cost::run(settings, &args).await,
        Command::Sim(args) => commands::sim::run(settings, args).await,
        Command::Config(command) => commands::config::run(settings, &command),
        Command::Plan(args) => commands::plan::run(settings, &args).await,
        Command::Doctor(args) => commands::doctor::run(settings, args.probe).await,
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    }
}
