//! The processes that drive a team, and what befalls them: they are killed, stopped for longer than their
//! claims or leases hold, and their connections to the store are cut. One that is gone is replaced.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::timeout;

use super::Field;

/// How long a claim holds without a sign of life, and how long a process may be silent, as the flags say it.
const CLAIM: (&str, Duration) = ("2s", Duration::from_secs(2));
const LEASE: (&str, Duration) = ("7s", Duration::from_secs(7));

/// Processes that may give up by themselves before something else is wrong than the store's connections.
const FALLS: usize = 20;

/// A small generator of our own, so that a printed seed means the same faults for ever, as far as time
/// allows.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }
}

/// What befell the processes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) started: usize,
    pub(crate) kills: usize,
    pub(crate) stops: usize,
    /// Stops that were longer than the lease.
    pub(crate) long_stops: usize,
    pub(crate) cuts: usize,
    /// Processes that found nothing left to do.
    pub(crate) ended: usize,
    /// What processes said that gave up by themselves.
    pub(crate) fell: Vec<String>,
}

/// What befalls a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blow {
    Kill,
    /// It stands still for longer than its claims hold.
    Stop,
    /// For longer than its leases hold.
    LongStop,
    /// Connections of the store are cut; where there are none it is a kill.
    Cut,
}

/// In this order, so that a small size has something of each too. Which process they hit is drawn.
const FAULTS: [Blow; 7] =
    [Blow::Kill, Blow::Stop, Blow::Cut, Blow::Kill, Blow::LongStop, Blow::Kill, Blow::Cut];

struct Slot {
    child: Child,
    talk: PathBuf,
    /// Until when it is stopped.
    stopped: Option<Instant>,
    killed: bool,
}

pub(crate) struct Hosts<'a> {
    field: &'a Field,
    slots: Vec<Slot>,
    draw: Draw,
    struck: usize,
    pub(crate) tally: Tally,
}

impl<'a> Hosts<'a> {
    pub(crate) fn start(field: &'a Field, processes: usize, seed: u64) -> Self {
        let draw = Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1));
        let mut hosts = Self { field, slots: Vec::new(), draw, struck: 0, tally: Tally::default() };
        for _ in 0..processes {
            let slot = hosts.host();
            hosts.slots.push(slot);
        }
        hosts
    }

    fn host(&mut self) -> Slot {
        self.tally.started += 1;
        let talk = self.field.stage.home().join(format!("host-{}", self.tally.started));
        let session = self.field.session.to_string();
        let how = ["--quiet", "--sandbox", "off", "--idle", "1s", "--claim-ttl", CLAIM.0, "--lease", LEASE.0];
        let mut command = self.field.command(&[&["team", "host", &session], &how[..]].concat());
        command.stdout(std::process::Stdio::null()).stderr(File::create(&talk).unwrap());
        Slot { child: command.spawn().unwrap(), talk, stopped: None, killed: false }
    }

    /// Continues processes whose stop is over, and replaces those that are gone.
    pub(crate) fn tend(&mut self) {
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.stopped.is_some_and(|until| Instant::now() >= until) {
                slot.stopped = None;
                signal(&slot.child, Signal::SIGCONT);
            }
            if let Some(status) = slot.child.try_wait().unwrap() {
                match status.code() {
                    Some(0) => self.tally.ended += 1,
                    None if slot.killed && status.signal() == Some(9) => {}
                    _ => {
                        let said = std::fs::read_to_string(&slot.talk).unwrap();
                        self.tally.fell.push(format!("{status}: {said}"));
                        assert!(self.tally.fell.len() <= FALLS, "hosts give up: {:?}", self.tally.fell);
                    }
                }
                self.slots[index] = self.host();
            }
        }
    }

    /// Something befalls one of them.
    pub(crate) async fn strike(&mut self) {
        let standing: Vec<usize> =
            (0..self.slots.len()).filter(|index| self.slots[*index].stopped.is_none()).collect();
        let what = FAULTS[self.struck % FAULTS.len()];
        self.struck += 1;
        if what == Blow::Cut && matches!(self.field.store, super::Store::Postgres { .. }) {
            self.tally.cuts += self.field.store.cut().await;
            return;
        }
        let long = what == Blow::LongStop;
        // One always goes on. A stopped one is killed now and then as well.
        if !(long || what == Blow::Stop) || standing.len() < 2 {
            let index = self.draw.below(self.slots.len());
            let slot = &mut self.slots[index];
            slot.killed = true;
            // If it has just ended by itself there is nothing to kill, and its status says so.
            let _ = slot.child.start_kill();
            self.tally.kills += 1;
            return;
        }
        let at_least = if long { LEASE.1 } else { CLAIM.1 };
        let pause = at_least + Duration::from_millis(500 + self.draw.below(2_000) as u64);
        self.tally.stops += 1;
        self.tally.long_stops += usize::from(long);
        let slot = &mut self.slots[standing[self.draw.below(standing.len())]];
        slot.stopped = Some(Instant::now() + pause);
        signal(&slot.child, Signal::SIGSTOP);
    }

    /// The fire is over: every process that was stopped continues.
    pub(crate) fn calm(&mut self) {
        for slot in &mut self.slots {
            if slot.stopped.take().is_some() {
                signal(&slot.child, Signal::SIGCONT);
            }
        }
    }

    /// Waits until all of them have found that there is nothing left to do.
    pub(crate) async fn end(mut self, patience: Duration) -> Tally {
        self.calm();
        for slot in &mut self.slots {
            let Ok(status) = timeout(patience, slot.child.wait()).await else {
                panic!("a host does not end: {}", std::fs::read_to_string(&slot.talk).unwrap())
            };
            let status = status.unwrap();
            let killed = slot.killed && status.signal() == Some(9);
            // One that was stopped past its lease may have found everything taken over, which is no fault of
            // its own.
            assert!(status.success() || killed, "{status}: {}", std::fs::read_to_string(&slot.talk).unwrap());
        }
        self.tally
    }

    /// What to say when everything takes too long.
    pub(crate) fn said(&self) -> String {
        let all = self.slots.iter().map(|slot| std::fs::read_to_string(&slot.talk).unwrap_or_default());
        format!("{:?}\n{}", self.tally, all.collect::<Vec<_>>().join("\n--\n"))
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = child.id() {
        // One that has just ended hears nothing any more.
        let _ = kill(Pid::from_raw(pid.cast_signed()), signal);
    }
}
