//! A workflow: a program in JavaScript starts agents side by side, and its value comes back.

#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use convoke::{Error, Session, Workflow, json};

const LOOK: &str = r#"
export const meta = {
  name: 'look-at-each',
  description: 'Has one agent look at each of the given directories',
}
const look = part => () => agent(`Which files are in ${part}? Name them.`)
const answers = await parallel(args.parts.map(look))
const line = (part, at) => `${part}: ${answers[at] === null ? 'no answer' : 'looked at'}`
return args.parts.map(line).join('\n')
"#;

#[tokio::main]
async fn work(dir: String) -> Result<(), Error> {
    let session = Session::builder(dir).offline().budget_agents(10).build().await?;
    let args = json!({"parts": ["src", "tests"]});
    let answer = session.run_workflow(Workflow::source(LOOK), Some(args)).await?;
    println!("{}", answer.text);
    println!("{:?}, {} agents", answer.status, answer.spend.agents);
    Ok(())
}

fn main() -> Result<(), Error> {
    convoke::helper_entry();
    work(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()))
}
