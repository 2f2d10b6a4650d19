//! Approval: every command is asked about, and the program decides instead of a person.

#![expect(clippy::print_stdout, reason = "an example prints what is asked")]

use convoke::{Error, Question, Reply, Rule, Session};

/// Commands that remove, move or send something are refused; everything else is allowed.
async fn decide(question: Question) -> Reply {
    let refused = ["rm ", "mv ", "curl ", "git push"];
    match question {
        Question::Call { wanted, .. } => {
            let refuse = refused.iter().any(|program| wanted.contains(program));
            let reply = if refuse { Reply::Refuse } else { Reply::Allow };
            println!("{reply:?}: {}", wanted.lines().next().unwrap_or_default());
            reply
        }
        // There will be more kinds of questions.
        _ => Reply::Refuse,
    }
}

#[tokio::main]
async fn work(dir: String) -> Result<(), Error> {
    let session = Session::builder(dir)
        .offline()
        .ask_always()
        .rule(Rule::deny().command("git push"))
        .on_question(decide)
        .build()
        .await?;
    let answer = session.run("How many files and lines are there?").await?;
    println!("{:?}: {} characters", answer.status, answer.text.len());
    Ok(())
}

fn main() -> Result<(), Error> {
    convoke::helper_entry();
    work(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()))
}
