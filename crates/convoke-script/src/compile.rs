//! Compiles text with the engine and runs none of it. Each compilation has an engine of its own that ends
//! with it.

use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Error, Module, Runtime};

use crate::protocol::Limits;

/// Why a text cannot be compiled.
pub(crate) struct Refusal {
    /// What the parser says.
    pub(crate) message: String,
    /// The line from 1 and the column from 1 in bytes, if it says so.
    pub(crate) place: Option<(u32, u32)>,
    /// Whether its stack was used up.
    pub(crate) deep: bool,
    /// Whether its memory was used up.
    pub(crate) full: bool,
}

/// The engine parses nothing without these.
type Needed = (intrinsic::Eval, intrinsic::RegExpCompiler, intrinsic::RegExp, intrinsic::Promise);

const HEAD: &str = "export default async()=>{";

/// Compiles a body as the body of an async function.
pub(crate) fn try_out(body: &str, limits: &Limits, stack_bytes: usize) -> Result<(), Refusal> {
    let fault = |error: Error| Refusal { message: error.to_string(), place: None, deep: false, full: true };
    let runtime = Runtime::new().map_err(fault)?;
    runtime.set_memory_limit(limits.heap_bytes);
    runtime.set_max_stack_size(stack_bytes);
    let context = Context::custom::<Needed>(&runtime).map_err(fault)?;
    context.with(|ctx| {
        let text = format!("{HEAD}{body}\n}}");
        Module::declare(ctx.clone(), "workflow.js", text).map(|_| ()).map_err(|error| refusal(&ctx, &error))
    })
}

fn refusal(ctx: &Ctx<'_>, error: &Error) -> Refusal {
    let caught = ctx.catch();
    let Some(exception) = caught.as_exception() else {
        // Without room for an error the engine throws null.
        return Refusal { message: error.to_string(), place: None, deep: false, full: caught.is_null() };
    };
    let message = exception.message().unwrap_or_default();
    let place = exception.stack().and_then(|stack| place(&stack, "workflow.js")).map(|(line, column)| {
        let head = if line == 1 { HEAD.len() } else { 0 };
        (line, column.saturating_sub(u32::try_from(head).unwrap_or_default()).max(1))
    });
    Refusal {
        deep: message.contains("Maximum call stack"),
        full: message.contains("out of memory"),
        message,
        place,
    }
}

/// The line and column of the first frame of a stack that is in a file.
pub(crate) fn place(stack: &str, file: &str) -> Option<(u32, u32)> {
    let marked = format!("{file}:");
    let behind = stack.split_once(&marked)?.1;
    let mut numbers = behind.split(|char: char| !char.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
