//! The other side of the terminal: a screen that runs in a process of its own, what it writes, when, and what
//! it costs. It knows the bytes of frames and nothing of how they came about.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The thread that feeds the screen is told apart from those that draw by its name.
pub(crate) const FEEDER: &str = "feeds";
const PATIENCE: Duration = Duration::from_secs(60);
const FRAME_BEGINS: &[u8] = b"\x1b[?2026h";
const FRAME_ENDS: &[u8] = b"\x1b[?2026l";

/// Something the screen's process did.
enum Did {
    /// It wrote to its terminal.
    Wrote(Instant, Vec<u8>),
    /// It said something to us.
    Said(String),
}

/// A frame, and when its first byte came.
pub(crate) struct Frame {
    pub(crate) at: Instant,
    bytes: Vec<u8>,
}

/// A screen in a process of its own, on a terminal of its own.
pub(crate) struct Screen {
    process: Child,
    keys: File,
    line: UnixStream,
    did: Receiver<Did>,
    half: Vec<u8>,
    began: Option<Instant>,
    pub(crate) grid: Grid,
    /// Bytes and frames so far.
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    said: Vec<String>,
}

impl Screen {
    /// Starts a screen of this size with so many agents.
    pub(crate) fn start(agents: usize, (columns, rows): (u16, u16)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("line");
        let listener = UnixListener::bind(&path).unwrap();
        let (ours, theirs) = terminal(columns, rows);
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["screen", &agents.to_string()])
            .arg(&path)
            .env("TERM", "xterm-256color")
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (line, _) = listener.accept().unwrap();
        let (sender, did) = channel();
        let (from, keys) = (File::from(ours.try_clone().unwrap()), File::from(ours));
        let heard = line.try_clone().unwrap();
        let said = sender.clone();
        thread::spawn(move || read(from, &sender));
        thread::spawn(move || listen(heard, &said));
        let grid = Grid::new(columns, rows);
        let half = Vec::new();
        let began = None;
        let said = Vec::new();
        Self { process, keys, line, did, half, began, grid, bytes: 0, frames: 0, said }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Presses keys; gives when.
    pub(crate) fn press(&mut self, keys: &str) -> Instant {
        let at = Instant::now();
        self.keys.write_all(keys.as_bytes()).unwrap();
        at
    }

    /// Tells the process to do something.
    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.line, "{what}").unwrap();
    }

    /// What the process said next, if it has.
    pub(crate) fn said(&mut self) -> Option<String> {
        (!self.said.is_empty()).then(|| self.said.remove(0))
    }

    /// Waits until the process says something.
    pub(crate) fn answer(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(said) = self.said() {
                return said;
            }
            self.look(deadline);
            assert!(Instant::now() < deadline, "the screen's process says nothing");
        }
    }

    /// Waits until a frame satisfies this; gives when it began.
    pub(crate) fn until(&mut self, what: &str, shows: impl Fn(&Grid, &Frame) -> bool) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let frames = self.look(deadline);
            for frame in frames {
                self.grid.take(&frame.bytes);
                if shows(&self.grid, &frame) {
                    return frame.at;
                }
            }
            assert!(Instant::now() < deadline, "it never shows {what}:\n{}", self.grid.text());
        }
    }

    /// Takes in what comes until then.
    pub(crate) fn drain(&mut self, until: Instant) {
        while Instant::now() < until {
            for frame in self.look(until) {
                self.grid.take(&frame.bytes);
            }
        }
    }

    /// Ends it, and gives what it said it has drawn.
    pub(crate) fn end(mut self) -> String {
        self.tell("end");
        let said = self.answer();
        let status = self.process.wait().unwrap();
        assert!(status.success(), "the screen's process ended with {status}");
        said
    }

    /// Waits for the next thing, no longer than this; gives the frames that are whole now.
    fn look(&mut self, until: Instant) -> Vec<Frame> {
        match self.did.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Did::Wrote(at, bytes)) => self.wrote(at, &bytes),
            Ok(Did::Said(line)) => {
                self.said.push(line);
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    fn wrote(&mut self, at: Instant, bytes: &[u8]) -> Vec<Frame> {
        self.bytes += bytes.len() as u64;
        self.half.extend_from_slice(bytes);
        let mut frames = Vec::new();
        loop {
            if self.began.is_none() {
                let Some(start) = place(&self.half, FRAME_BEGINS) else {
                    // What stands between frames is of no interest, but a beginning may have been cut in two.
                    let keep = self.half.len().min(FRAME_BEGINS.len() - 1);
                    self.half.drain(..self.half.len() - keep);
                    return frames;
                };
                self.half.drain(..start);
                self.began = Some(at);
            }
            let Some(end) = place(&self.half, FRAME_ENDS) else { return frames };
            let bytes = self.half.drain(..end + FRAME_ENDS.len()).collect();
            frames.push(Frame { at: self.began.take().unwrap_or(at), bytes });
            self.frames += 1;
        }
    }
}

impl Frame {
    /// The text of the frame without what moves and colours it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        walk(&self.bytes, |part| {
            if let Part::Text(c) = part {
                text.push(c)
            }
        });
        text
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It has ended by itself unless something went wrong.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Both ends of a new terminal of this size.
fn terminal(columns: u16, rows: u16) -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(OsStr::from_bytes(name.as_bytes()), flags, Mode::empty()).unwrap();
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (ours, theirs)
}

fn read(mut from: File, to: &Sender<Did>) {
    let mut buffer = vec![0; 1 << 16];
    // The end of a terminal is an error.
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.send(Did::Wrote(Instant::now(), buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn listen(line: UnixStream, to: &Sender<Did>) {
    for said in BufReader::new(line).lines().map_while(Result::ok) {
        if to.send(Did::Said(said)).is_err() {
            return;
        }
    }
}

fn place(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A part of what is written to a terminal.
enum Part<'a> {
    Text(char),
    /// A sequence without its beginning: `2J`, `3;4H`.
    Sequence(&'a str),
}

fn walk(bytes: &[u8], mut take: impl FnMut(Part<'_>)) {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_ref();
    while let Some(c) = rest.chars().next() {
        let Some(sequence) = rest.strip_prefix("\x1b[") else {
            take(Part::Text(c));
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |end| end + 1);
        take(Part::Sequence(&sequence[..end]));
        rest = &sequence[end..];
    }
}

/// What stands on the whole screen: as much of a terminal as pictures need that say where every text stands.
pub(crate) struct Grid {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
}

impl Grid {
    fn new(columns: u16, rows: u16) -> Self {
        Self { cells: vec![vec![' '; columns.into()]; rows.into()], at: (0, 0) }
    }

    fn take(&mut self, bytes: &[u8]) {
        walk(bytes, |part| match part {
            Part::Text(c) => {
                if let Some(cell) = self.cells.get_mut(self.at.0).and_then(|row| row.get_mut(self.at.1)) {
                    *cell = c;
                }
                self.at.1 += 1;
            }
            Part::Sequence("2J") => self.cells.iter_mut().for_each(|row| row.fill(' ')),
            Part::Sequence(sequence) => {
                let place = sequence.strip_suffix('H').and_then(|place| place.split_once(';'));
                if let Some((Ok(row), Ok(column))) =
                    place.map(|(row, column)| (row.parse::<usize>(), column.parse::<usize>()))
                {
                    self.at = (row.saturating_sub(1), column.saturating_sub(1));
                }
            }
        });
    }

    /// The row with the mark of what is chosen, among these columns.
    pub(crate) fn chosen(&self, columns: std::ops::Range<usize>) -> Option<usize> {
        self.cells.iter().position(|row| row.get(columns.clone()).is_some_and(|row| row.contains(&'›')))
    }

    pub(crate) fn text(&self) -> String {
        let rows: Vec<String> =
            self.cells.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned()).collect();
        rows.join("\n")
    }
}

/// What a process has used so far.
pub(crate) struct Used {
    at: Instant,
    /// Seconds of a core of every thread, by its name, and how often all of them went to sleep.
    threads: BTreeMap<String, f64>,
    sleeps: u64,
}

impl Used {
    pub(crate) fn by(pid: u32) -> Self {
        let mut used = Self { at: Instant::now(), threads: BTreeMap::new(), sleeps: 0 };
        for thread in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
            let read = |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
            *used.threads.entry(read("comm").trim().to_owned()).or_default() +=
                seconds(&read("schedstat"), &read("stat"));
            used.sleeps += figure(&read("status"), "voluntary_ctxt_switches:");
        }
        used
    }

    /// Percent of a core since then: of the threads that draw, and of the thread that feeds them.
    pub(crate) fn percent_since(&self, before: &Self) -> (f64, f64) {
        let took = (self.at - before.at).as_secs_f64();
        let of = |name: &String| self.threads[name] - before.threads.get(name).copied().unwrap_or(0.0);
        let (feeds, draws): (Vec<&String>, Vec<&String>) =
            self.threads.keys().partition(|name| *name == FEEDER);
        let sum = |names: Vec<&String>| 100.0 * names.into_iter().map(of).sum::<f64>() / took;
        (sum(draws), sum(feeds))
    }

    /// How often a thread went to sleep, a second.
    pub(crate) fn sleeps_since(&self, before: &Self) -> f64 {
        (self.sleeps - before.sleeps) as f64 / (self.at - before.at).as_secs_f64()
    }
}

/// The seconds of a core that a thread has used: to the nanosecond where the kernel says so, else in
/// hundredths.
fn seconds(schedstat: &str, stat: &str) -> f64 {
    if let Some(nanos) = schedstat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()) {
        return nanos / 1e9;
    }
    // The name stands in brackets and may hold anything.
    let rest = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    rest.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// MiB that a process has in memory now, and had at most.
pub(crate) fn memory(pid: u32) -> (f64, f64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mib = |name| figure(&status, name) as f64 / 1024.0;
    (mib("VmRSS:"), mib("VmHWM:"))
}

fn figure(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|figure| figure.parse().ok()).unwrap_or(0)
}
