//! The first answer: asks about a directory and prints what comes back. Runs without a key.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]
#[tokio::main]
async fn ask(dir: String) -> Result<(), convoke::Error> {
    let session = convoke::Session::builder(dir).offline().build().await?;
    let answer = session.run("Review this directory").await?;
    println!("{}", answer.text);
    Ok(())
}

fn main() -> Result<(), convoke::Error> {
    convoke::helper_entry();
    ask(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()))
}
