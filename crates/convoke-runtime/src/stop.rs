//! Asking a run to stop, in two steps: first nothing new starts, then what is under way is cut off.

use tokio::sync::watch;

/// How hard a run is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    /// Not at all.
    Run,
    /// Nothing new starts; what is under way is waited for.
    Drain,
    /// What is under way is cut off and recorded as interrupted.
    Cut,
}

/// The asking end.
#[derive(Debug, Clone)]
pub struct Stopper(watch::Sender<StopLevel>);

/// The listening end.
#[derive(Debug, Clone)]
pub struct Stop {
    level: watch::Receiver<StopLevel>,
    /// Whether a person stopped what this is done for.
    halt: Option<Halt>,
}

/// Says that a person stopped an exchange, and who; the agents that work for it listen.
pub(crate) type Halt = watch::Receiver<Option<String>>;

impl Stopper {
    /// A pair of ends.
    pub fn new() -> (Stopper, Stop) {
        let (sender, receiver) = watch::channel(StopLevel::Run);
        (Stopper(sender), Stop { level: receiver, halt: None })
    }

    /// Asks; a softer request never takes back a harder one.
    pub fn ask(&self, level: StopLevel) {
        self.0.send_if_modified(|now| {
            let harder = level > *now;
            if harder {
                *now = level;
            }
            harder
        });
    }

    /// Whether it was asked at all.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow() > StopLevel::Run
    }
}

impl Stop {
    /// A stop that is never requested.
    pub fn never() -> Self {
        Stopper::new().1
    }

    /// How hard this is asked to stop, by the process or by a person.
    pub(crate) fn level(&self) -> StopLevel {
        if self.halted().is_some() { StopLevel::Cut } else { self.asked() }
    }

    /// How hard everything in this process is asked to stop.
    pub(crate) fn asked(&self) -> StopLevel {
        *self.level.borrow()
    }

    /// The person who stopped what this is done for.
    pub(crate) fn halted(&self) -> Option<String> {
        self.halt.as_ref().and_then(|halt| halt.borrow().clone())
    }

    /// The same for an agent that works for an exchange which a person may stop.
    pub(crate) fn below(&self, halt: Halt) -> Self {
        Self { level: self.level.clone(), halt: Some(halt) }
    }

    /// Waits until the level is above the given one.
    pub(crate) async fn above(&mut self, level: StopLevel) -> StopLevel {
        let Self { level: asked, halt } = self;
        tokio::select! {
            now = harder(asked, level) => now,
            () = halted(halt.as_mut()), if level < StopLevel::Cut => StopLevel::Cut,
        }
    }
}

async fn harder(asked: &mut watch::Receiver<StopLevel>, level: StopLevel) -> StopLevel {
    let heard = asked.wait_for(|now| *now > level).await.map(|now| *now).ok();
    match heard {
        Some(now) => now,
        // The asking end is gone, so no request comes any more.
        None => std::future::pending().await,
    }
}

async fn halted(halt: Option<&mut Halt>) {
    let heard = match halt {
        Some(halt) => halt.wait_for(Option::is_some).await.is_ok(),
        None => false,
    };
    if !heard {
        std::future::pending().await
    }
}
