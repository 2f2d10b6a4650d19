//! One JavaScript engine for one program: its limits, the names around the program, the modules that are run.
//! It never touches the outside; what a program wants lands on the [`Outbox`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Func;
use rquickjs::runtime::MemoryUsage;
use rquickjs::{Context, Ctx, Error, Exception, Function, Module, Object, Persistent, Runtime, Value};
use serde_json::json;

use crate::instrument::NAMES;
use crate::outbox::{CallSite, Outbox, Stop};
use crate::protocol::{FaultKind, Limits, Start};
use crate::web;

/// Everything but clocks, weak references and what only hosts need.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// How many rejections that no handler took are remembered.
const REMEMBERED: usize = 50;

/// Room for the names around the program, which is not the program's own.
const PRELUDE_HEAP: usize = 4 << 20;

type Rejections = Rc<RefCell<Vec<(Persistent<Value<'static>>, Persistent<Value<'static>>)>>>;

/// The engine. Values that outlive a call are released before the runtime is, hence the order.
pub(crate) struct Engine {
    api: Option<Persistent<Object<'static>>>,
    rejections: Rejections,
    context: Context,
    runtime: Runtime,
    ticks: Rc<Cell<u64>>,
    most: u64,
    stop: Stop,
    heap: usize,
    watch: Cell<Watch>,
}

/// Looks at the heap now and then between two jobs: a job that finds it full can be lost without a word, and
/// the engine's collector, which would otherwise run anywhere, is not safe where memory has just run out.
#[derive(Clone, Copy, Default)]
struct Watch {
    jobs: u64,
    next: u64,
    peak: usize,
    collect: usize,
}

/// A job counts as work even if it computes next to nothing. The default ticks allow 400,000 of them in one
/// step; the widest `parallel` and a `pipeline` of four stages behind it take less than a quarter of that.
const JOBS_PER_TICK: u64 = 20;

/// Below this the collector is not run.
const SMALL_HEAP: usize = 8 << 20;

impl Drop for Engine {
    fn drop(&mut self) {
        self.rejections.borrow_mut().clear();
    }
}

impl Engine {
    /// An engine with the names around a program in place and frozen.
    pub(crate) fn new(start: &Start, outbox: &Rc<RefCell<Outbox>>, stop: Stop) -> Result<Self, String> {
        let Limits { heap_bytes, stack_bytes, ticks: most, .. } = start.limits;
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let heap = heap_bytes.saturating_add(PRELUDE_HEAP);
        runtime.set_memory_limit(heap);
        runtime.set_max_stack_size(stack_bytes);
        runtime.set_gc_threshold(usize::MAX);
        let ticks = Rc::new(Cell::new(0));
        let counter = Rc::clone(&ticks);
        let stopped = stop.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            count(&counter, most, &stopped);
            stopped.get().is_some()
        })));
        let rejections = Rejections::default();
        let noted = Rc::clone(&rejections);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, handled| {
            note(&noted, &ctx, promise, reason, handled);
        })));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|error| error.to_string())?;
        let mut engine =
            Self { api: None, rejections, context, runtime, ticks, most, stop, heap, watch: Cell::default() };
        let api = engine.context.with(|ctx| {
            let api = prepare(&ctx, start, outbox).map_err(|error| told(&ctx, &error))?;
            Ok::<_, String>(Persistent::save(&ctx, api))
        })?;
        engine.api = Some(api);
        Ok(engine)
    }

    /// Begins a step: the program may work anew.
    pub(crate) fn begin(&self) {
        self.ticks.set(0);
    }

    /// Calls the program that a instrumented text holds: `start`, or `child` with a number and a name.
    pub(crate) fn run(&self, file: &str, text: &str, child: Option<(u32, &str)>) -> Result<(), String> {
        self.with_api(|ctx, api| {
            let (module, evaluated) = Module::declare(ctx.clone(), file, text)?.eval()?;
            evaluated.finish::<()>()?;
            let factory: Function<'_> = module.get("default")?;
            match child {
                None => api.get::<_, Function<'_>>("start")?.call::<_, ()>((factory,)),
                Some((call, name)) => {
                    api.get::<_, Function<'_>>("child")?.call::<_, ()>((call, name, factory))
                }
            }
        })
    }

    /// Resolves a call with a value that is JSON text, or rejects it with a message.
    pub(crate) fn settle(&self, call: u32, answer: Result<&str, &str>) -> Result<(), String> {
        self.with_api(|ctx, api| {
            let settle: Function<'_> = api.get("settle")?;
            match answer {
                Ok(json) => settle.call::<_, ()>((call, true, ctx.json_parse(json)?)),
                Err(message) => settle.call::<_, ()>((call, false, message)),
            }
        })
    }

    /// What `budget.spent()` says from now on.
    pub(crate) fn spend(&self, spent: u64) -> Result<(), String> {
        // A number of JavaScript: exact as far as any bill goes.
        self.with_api(|_, api| api.get::<_, Function<'_>>("spend")?.call::<_, ()>((spent as f64,)))
    }

    /// Runs until nothing is left to run, or a limit says stop.
    pub(crate) fn pump(&self) {
        while self.stop.get().is_none() {
            self.look();
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return,
                // A job of the engine fails only where a program cannot catch it.
                Err(_) => {
                    let message = self.context.with(|ctx| told(&ctx, &Error::Exception));
                    self.blame(&message);
                }
            }
        }
    }

    /// How the program ended, as text for the interpreter; `None` if it has not.
    pub(crate) fn report(&self) -> Result<Option<String>, String> {
        self.with_api(|_, api| api.get::<_, Function<'_>>("report")?.call(()))
    }

    /// The reasons of rejections that no handler took.
    pub(crate) fn unhandled(&self) -> Vec<String> {
        let noted: Vec<_> = self.rejections.borrow_mut().drain(..).collect();
        let described = noted.into_iter().filter_map(|(_, reason)| {
            self.with_api(|ctx, api| {
                let reason = reason.restore(ctx)?;
                api.get::<_, Function<'_>>("describe")?.call::<_, String>((reason,))
            })
            .ok()
        });
        described.collect()
    }

    /// Whether the heap is full, or was so full lately that it may have been.
    pub(crate) fn is_full(&self) -> bool {
        let used = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(usize::MAX);
        used.max(self.watch.get().peak) > self.heap / 3
    }

    /// A look takes longer the more objects there are, so the pause until the next one grows with them.
    fn look(&self) {
        let mut watch = self.watch.get();
        watch.jobs += 1;
        if watch.jobs.is_multiple_of(JOBS_PER_TICK) {
            count(&self.ticks, self.most, &self.stop);
        }
        if watch.jobs > watch.next {
            let mut usage = self.runtime.memory_usage();
            let size = |usage: &MemoryUsage| usize::try_from(usage.malloc_size).unwrap_or_default();
            if size(&usage) > watch.collect.max(SMALL_HEAP) {
                self.runtime.run_gc();
                usage = self.runtime.memory_usage();
                let left = size(&usage);
                watch.collect = left + left.min(self.heap.saturating_sub(left) / 2);
            }
            watch.peak = watch.peak.max(size(&usage));
            watch.next = watch.jobs + (u64::try_from(usage.obj_count).unwrap_or_default() / 8).max(2_000);
        }
        self.watch.set(watch);
    }

    /// Bytes of the heap in use.
    pub(crate) fn heap_used(&self) -> u64 {
        u64::try_from(self.runtime.memory_usage().malloc_size).unwrap_or_default()
    }

    /// Stops the program if an error of the engine is one that a program must not survive.
    fn blame(&self, message: &str) {
        if message.contains("out of memory") || message.is_empty() || message == "null" {
            self.stop.set(FaultKind::Heap);
        } else if message.contains("Maximum call stack") {
            self.stop.set(FaultKind::Stack);
        }
    }

    fn with_api<T>(
        &self,
        f: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> Result<T, Error>,
    ) -> Result<T, String> {
        let Some(api) = self.api.clone() else { return Err("the engine has not started".to_owned()) };
        let result = self.context.with(|ctx| {
            let api = api.restore(&ctx).map_err(|error| error.to_string())?;
            f(&ctx, &api).map_err(|error| told(&ctx, &error))
        });
        result.inspect_err(|message| self.blame(message))
    }
}

/// Counts a tick and stops at the last.
fn count(ticks: &Cell<u64>, most: u64, stop: &Stop) {
    ticks.set(ticks.get() + 1);
    if ticks.get() > most {
        stop.set(FaultKind::Ticks);
    }
}

/// Keeps the list of rejections that no handler took.
fn note<'js>(noted: &Rejections, ctx: &Ctx<'js>, promise: Value<'js>, reason: Value<'js>, handled: bool) {
    let mut noted = noted.borrow_mut();
    if handled {
        noted.retain(|(kept, _)| kept.clone().restore(ctx).is_ok_and(|kept| kept != promise));
    } else if noted.len() < REMEMBERED {
        noted.push((Persistent::save(ctx, promise), Persistent::save(ctx, reason)));
    }
}

/// The text of an error of the engine; the pending exception is taken out of the engine.
fn told(ctx: &Ctx<'_>, error: &Error) -> String {
    if !error.is_exception() {
        return error.to_string();
    }
    let caught = ctx.catch();
    match caught.as_exception() {
        Some(exception) => exception.message().unwrap_or_default(),
        None if caught.is_null() => "null".to_owned(),
        None => "something that is no error was thrown".to_owned(),
    }
}

/// Puts the names around the program in place and freezes them.
fn prepare<'js>(ctx: &Ctx<'js>, start: &Start, outbox: &Rc<RefCell<Outbox>>) -> Result<Object<'js>, Error> {
    let host = host(ctx, outbox)?;
    prelude(ctx, "clock", include_str!("prelude/clock.js"))?.call::<_, ()>(())?;
    prelude(ctx, "web", include_str!("prelude/web.js"))?.call::<_, ()>((host.clone(),))?;
    let portrayer = prelude(ctx, "portray", include_str!("prelude/portray.js"))?;
    let Limits { value_bytes, agents, items, .. } = start.limits;
    let limits = json!({
        "names": NAMES, "value_bytes": value_bytes, "agents": agents, "items": items,
        "total": start.budget_total, "spent": start.spent,
    });
    let limits = ctx.json_parse(limits.to_string())?;
    let api: Object<'js> =
        prelude(ctx, "api", include_str!("prelude/api.js"))?.call((host, limits, portrayer))?;
    let args = match &start.args {
        Some(value) => ctx.json_parse(value.to_string())?,
        None => Value::new_undefined(ctx.clone()),
    };
    api.get::<_, Function<'js>>("open")?.call::<_, ()>(())?;
    prelude(ctx, "harden", include_str!("prelude/harden.js"))?.call::<_, ()>(())?;
    api.get::<_, Function<'js>>("hand")?.call::<_, ()>((args,))?;
    Ok(api)
}

fn prelude<'js>(ctx: &Ctx<'js>, name: &str, text: &str) -> Result<Function<'js>, Error> {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("convoke-{name}"));
    ctx.eval_with_options(text, options)
}

/// The functions through which a program's wants reach the outbox. Only the prelude holds them.
fn host<'js>(ctx: &Ctx<'js>, outbox: &Rc<RefCell<Outbox>>) -> Result<Object<'js>, Error> {
    let host = Object::new(ctx.clone())?;
    let refuse = |ctx: &Ctx<'_>, message: String| Exception::throw_type(ctx, &message);
    let at = Rc::clone(outbox);
    host.set(
        "call",
        Func::from(
            move |ctx: Ctx<'js>,
                  want: String,
                  path: String,
                  phase: Option<String>,
                  within: Option<String>,
                  stack: String| {
                at.borrow_mut()
                    .call(want, CallSite { path, phase, within, stack })
                    .map_err(|message| refuse(&ctx, message))
            },
        ),
    )?;
    let at = Rc::clone(outbox);
    host.set(
        "log",
        Func::from(move |ctx: Ctx<'js>, text: String| {
            at.borrow_mut().log(&text).map_err(|message| refuse(&ctx, message))
        }),
    )?;
    let at = Rc::clone(outbox);
    host.set(
        "phase",
        Func::from(move |ctx: Ctx<'js>, title: String, within: Option<String>| {
            at.borrow_mut().phase(&title, within).map_err(|message| refuse(&ctx, message))
        }),
    )?;
    let at = Rc::clone(outbox);
    host.set("clear", Func::from(move |call: u32| at.borrow_mut().clear(call)))?;
    let at = Rc::clone(outbox);
    host.set("full", Func::from(move || at.borrow().stop.set(FaultKind::Heap)))?;
    let at = Rc::clone(outbox);
    host.set("stopped", Func::from(move || at.borrow().stop.get().is_some()))?;
    host.set("url", Func::from(|text: String, base: Option<String>| web::url(&text, base.as_deref())))?;
    host.set(
        "setUrl",
        Func::from(|href: String, part: String, value: String| web::set_url(&href, &part, &value)),
    )?;
    host.set("query", Func::from(|text: String| web::query(&text)))?;
    host.set("writeQuery", Func::from(|pairs: String| web::write_query(&pairs)))?;
    Ok(host)
}
