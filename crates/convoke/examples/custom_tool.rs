//! A tool of your own: the lead is given `ticket`, which looks something up in your program.
//!
//! The built-in model calls a tool of yours only when the task says it word for word, as here. A real one
//! decides by itself when to call it.

#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use convoke::{AfterCrash, Error, Event, Role, Session, Tool, ToolContext, Value, json};

struct Ticket {
    open: Vec<u64>,
}

impl Tool for Ticket {
    fn name(&self) -> &str {
        "ticket"
    }

    fn description(&self) -> &str {
        "Says whether a ticket of the tracker is open. Use it before you speak about a ticket."
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}})
    }

    /// It only reads, so calls may run beside each other.
    fn writes(&self) -> bool {
        false
    }

    /// A call that a crash cut off is simply made again.
    fn after_crash(&self) -> AfterCrash {
        AfterCrash::Repeat
    }

    async fn call(&self, input: Value, context: ToolContext) -> Result<String, String> {
        if context.is_cancelled() {
            return Err("the work was stopped".to_owned());
        }
        let id = input["id"].as_u64().ok_or("a ticket has a number")?;
        let state = if self.open.contains(&id) { "open" } else { "closed" };
        Ok(format!("ticket {id} is {state}"))
    }
}

#[tokio::main]
async fn work(dir: String) -> Result<(), Error> {
    let session = Session::builder(dir)
        .offline()
        .tool(Ticket { open: vec![7] }, [Role::Lead, Role::Worker])
        .build()
        .await?;
    let mut events = session.events();
    let answer = session.run(r#"Call the tool ticket with {"id": 7}"#).await?;
    while let Some(event) = events.try_next() {
        match event {
            Event::ToolStarted { tool, input, .. } => println!("{tool} {input}"),
            Event::ToolEnded { text, .. } => println!("-> {text}"),
            _ => {}
        }
    }
    println!("{}", answer.text);
    Ok(())
}

fn main() -> Result<(), Error> {
    convoke::helper_entry();
    work(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()))
}
