//! A thousand agents on a real terminal: the whole screen (`run`) in a process of its own, on a terminal of
//! its own, is sent fifty events a second, while a key is pressed twice a second. Measures what is drawn,
//! what that costs, and how long a key takes until it is seen; then the same with a single agent, and with a
//! screen that is sent nothing. `THOUSAND_SECONDS` says how long each picture is looked at, and with
//! `THOUSAND_PICTURES` set the last picture of each fleet is printed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

mod feed;
mod made_up;
mod watch;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use convoke_terminal::{Ends, ScreenOptions, Theme};
use tokio::sync::mpsc::unbounded_channel;

use feed::Feed;
use watch::{FEEDER, Screen, Used, memory};

const AGENTS: usize = 1_000;
const KEY_EVERY: Duration = Duration::from_millis(500);
/// Of a core, in percent.
const GOAL: f64 = 10.0;
const DOWN: &str = "\x1b[B";
const UP: &str = "\x1b[A";
const TO_THE_FLEET: &str = "\x0f";
const CLEAR_WRITTEN: &str = "\x15";

fn main() {
    // This executable is also the guard of the screen's terminal.
    convoke_terminal::guard_entry();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, agents, line] = &arguments[..]
        && first == "screen"
    {
        return screen(agents.parse().unwrap(), line);
    }
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    // As a test it only has to work.
    let is_test = has("--test") || !has("--bench");
    let seconds = std::env::var_os("THOUSAND_SECONDS").and_then(|seconds| seconds.to_str()?.parse().ok());
    compare(Duration::from_secs_f64(seconds.unwrap_or(if is_test { 2.0 } else { 30.0 })));
}

/// A clock that setting the system's time does not move.
fn clock() -> u64 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let passed = BEGAN.get_or_init(Instant::now).elapsed().as_millis();
    1_800_000_000_000 + u64::try_from(passed).unwrap_or(u64::MAX)
}

/// Which picture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Picture {
    /// The conversation; the keys write a text.
    Session,
    /// The list of the agents; the keys go up and down in it.
    Fleet,
    /// The turns of a busy agent beside that list; the keys go up and down in them.
    Page,
}

impl Picture {
    fn size(self) -> (u16, u16) {
        match self {
            Self::Session | Self::Fleet => (80, 24),
            Self::Page => (200, 60),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Session => "session 80x24",
            Self::Fleet => "fleet 80x24",
            Self::Page => "page 200x60",
        }
    }

    /// The columns in which the mark of what is chosen stands.
    fn columns(self) -> std::ops::Range<usize> {
        match self {
            Self::Session | Self::Fleet => 0..2,
            Self::Page => 84..90,
        }
    }
}

/// What a picture cost while it was looked at.
struct Cost {
    picture: Picture,
    agents: usize,
    events: u64,
    seconds: f64,
    frames: u64,
    bytes: u64,
    /// Percent of a core: to draw, and to make up what is drawn.
    draws: f64,
    feeds: f64,
    /// MiB, before anything was sent beyond the start, at the end, and at most.
    at_first: f64,
    at_last: f64,
    peak: f64,
    /// From the key to the frame that shows it, in milliseconds, the shortest first.
    keys: Vec<f64>,
}

fn compare(time: Duration) {
    let pictures = [Picture::Session, Picture::Fleet, Picture::Page];
    println!(
        "{:<14} {:>6} {:>7} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>24}",
        "picture",
        "agents",
        "frames",
        "frames/s",
        "KiB/s",
        "cpu %",
        "feed %",
        "MiB",
        "peak",
        "key ms median/p95/max"
    );
    let mut quiet = Vec::new();
    let mut look = |picture, agents| {
        let (cost, stillness) = look(picture, agents, time);
        cost.print();
        quiet.push((picture, agents, stillness));
        cost
    };
    let costs: Vec<(Cost, Cost)> = pictures.map(|picture| (look(picture, AGENTS), look(picture, 1))).into();
    for (many, one) in &costs {
        println!(
            "thousand_{} {:.2} % of a core ({}, {:.1} times a single agent), {:.1} KiB an agent at the \
             start, a key seen after {:.1} ms at the median, {:.1} times a single agent",
            many.picture.name().replace(' ', "_"),
            many.draws,
            judged(many.draws),
            many.draws / one.draws.max(0.01),
            1024.0 * (many.at_first - one.at_first) / (many.agents - one.agents) as f64,
            share(&many.keys, 0.5),
            share(&many.keys, 0.5) / share(&one.keys, 0.5).max(0.01),
        );
    }
    for (picture, agents, [works, rests]) in quiet.iter().filter(|(_, agents, _)| *agents == AGENTS) {
        println!(
            "quiet_{} {agents} agents to whom nothing happens: at work {:.2} % of a core, {:.1} frames/s; \
             at rest {:.3} %, {:.1} frames/s, {:.1} sleeps of a thread a second",
            picture.name().replace(' ', "_"),
            works.draws,
            works.frames,
            rests.draws,
            rests.frames,
            rests.sleeps,
        );
    }
}

/// How far the goal is kept. It is one for the optimised program.
fn judged(percent: f64) -> &'static str {
    match (cfg!(debug_assertions), percent < GOAL) {
        (true, _) => "not optimised, so not judged",
        (false, true) => "the goal is under 10 %",
        (false, false) => "MISSES the goal of 10 %",
    }
}

impl Cost {
    fn print(&self) {
        let key = format!(
            "{:.1}/{:.1}/{:.1}",
            share(&self.keys, 0.5),
            share(&self.keys, 0.95),
            share(&self.keys, 1.0)
        );
        println!(
            "{:<14} {:>6} {:>7} {:>8.1} {:>9.1} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>24}   ({} events, {} keys \
                in {:.0} s)",
            self.picture.name(),
            self.agents,
            self.frames,
            self.frames as f64 / self.seconds,
            self.bytes as f64 / 1024.0 / self.seconds,
            self.draws,
            self.feeds,
            self.at_last,
            self.peak,
            key,
            self.events,
            self.keys.len(),
            self.seconds,
        );
    }
}

/// The value below which this share of them is.
fn share(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// What a screen costs that is sent nothing.
struct IdleCost {
    draws: f64,
    frames: f64,
    sleeps: f64,
}

/// Measures a picture while events come, then while none come, then after every agent has ended.
fn look(picture: Picture, agents: usize, time: Duration) -> (Cost, [IdleCost; 2]) {
    let mut screen = Screen::start(agents, picture.size());
    assert_eq!(screen.answer(), "ready");
    let mut person = Person { picture, written: String::new(), pressed: 0 };
    person.sit_down(&mut screen);
    // What was sent at the start has been drawn.
    screen.drain(Instant::now() + Duration::from_millis(600));
    let (at_first, _) = memory(screen.pid());

    let before = Used::by(screen.pid());
    let begun = Instant::now();
    let bytes = screen.bytes;
    let frames = screen.frames;
    screen.tell(&format!("feed {}", time.as_secs_f64()));
    let mut keys = Vec::new();
    let said = loop {
        if let Some(said) = screen.said() {
            break said;
        }
        keys.push(person.press(&mut screen).as_secs_f64() * 1_000.0);
        // Not in step with the events.
        screen.drain(Instant::now() + KEY_EVERY + Duration::from_millis(keys.len() as u64 * 37 % 50));
    };
    let after = Used::by(screen.pid());
    person.sees_all_of_it(&screen, agents);
    let (draws, feeds) = after.percent_since(&before);
    let (at_last, peak) = memory(screen.pid());
    let mut cost = Cost {
        picture,
        agents,
        events: said.parse().unwrap(),
        seconds: begun.elapsed().as_secs_f64(),
        frames: screen.frames - frames,
        bytes: screen.bytes - bytes,
        draws,
        feeds,
        at_first,
        at_last,
        peak,
        keys,
    };
    cost.keys.sort_by(f64::total_cmp);
    assert!(cost.frames > 0 && !cost.keys.is_empty(), "nothing was drawn");

    let works = idle_cost(&mut screen, time / 3);
    screen.tell("rest");
    assert_eq!(screen.answer(), "rests");
    screen.drain(Instant::now() + Duration::from_millis(600));
    let rests = idle_cost(&mut screen, time / 3);
    assert_eq!(rests.frames, 0.0, "something is drawn although nothing happens and nobody works");
    let drawn = screen.end();
    let pictures: u64 = drawn.split(' ').next().unwrap().parse().unwrap();
    assert!(pictures >= cost.frames, "{pictures} pictures are told, and {} frames were seen", cost.frames);
    (cost, [works, rests])
}

fn idle_cost(screen: &mut Screen, time: Duration) -> IdleCost {
    let before = Used::by(screen.pid());
    let frames = screen.frames;
    let begun = Instant::now();
    screen.drain(Instant::now() + time);
    let after = Used::by(screen.pid());
    let frames = (screen.frames - frames) as f64 / begun.elapsed().as_secs_f64();
    IdleCost { draws: after.percent_since(&before).0, frames, sleeps: after.sleeps_since(&before) }
}

/// The person at the keys, who looks at the screen.
struct Person {
    picture: Picture,
    written: String,
    pressed: usize,
}

impl Person {
    /// Goes to the picture.
    fn sit_down(&mut self, screen: &mut Screen) {
        if self.picture == Picture::Session {
            screen.press(CLEAR_WRITTEN);
            return;
        }
        screen.press(TO_THE_FLEET);
        let list = if self.picture == Picture::Page { 0..3 } else { self.picture.columns() };
        screen.until("the fleet", |grid, _| grid.chosen(list.clone()).is_some());
        if self.picture == Picture::Page {
            let lead = screen.grid.chosen(list.clone());
            screen.press(DOWN);
            screen.until("the busy agent", |grid, _| grid.chosen(list.clone()) != lead);
            screen.press("\r");
            let columns = self.picture.columns();
            screen.until("its page", |grid, _| grid.chosen(columns.clone()).is_some());
            // Away from the end, where everything that comes would move the mark.
            for _ in 0..5 {
                self.moves(screen, UP);
            }
        }
    }

    /// Fails unless the picture is the one that is meant.
    fn sees_all_of_it(&self, screen: &Screen, agents: usize) {
        let text = screen.grid.text();
        // The rows of a session stand where the terminal puts them, and the grid cannot tell where that is.
        if self.picture == Picture::Session {
            return;
        }
        if std::env::var_os("THOUSAND_PICTURES").is_some() {
            println!("{text}");
        }
        let mut wanted = Vec::new();
        if agents == AGENTS {
            wanted.push("of 800 done");
        }
        if self.picture == Picture::Page {
            wanted.extend(["$ rg -n", "turn 10"]);
        }
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted:?} does not stand in\n{text}");
        }
    }

    /// Presses a key and waits until it is seen; gives how long that took.
    fn press(&mut self, screen: &mut Screen) -> Duration {
        self.pressed += 1;
        match self.picture {
            Picture::Session => self.writes(screen),
            Picture::Fleet | Picture::Page => {
                self.moves(screen, if self.pressed % 2 == 1 { DOWN } else { UP })
            }
        }
    }

    fn writes(&mut self, screen: &mut Screen) -> Duration {
        if self.written.len() == 40 {
            self.written.clear();
            screen.press(CLEAR_WRITTEN);
            screen.until("that nothing is written", |_, frame| frame.text().contains("› "));
        }
        // No text of the session has such words, so that nothing else looks like them.
        self.written.push(char::from(b'A' + (self.pressed * 7 % 26) as u8));
        let pressed = screen.press(&self.written[self.written.len() - 1..]);
        let wanted = format!("› {}", self.written);
        screen.until(&wanted, |_, frame| frame.text().contains(&wanted)).saturating_duration_since(pressed)
    }

    fn moves(&self, screen: &mut Screen, key: &str) -> Duration {
        let columns = self.picture.columns();
        let before = screen.grid.chosen(columns.clone());
        let pressed = screen.press(key);
        let seen = screen.until("that the mark moves", |grid, _| {
            let now = grid.chosen(columns.clone());
            now.is_some() && now != before
        });
        seen.saturating_duration_since(pressed)
    }
}

/// The screen's own process: it takes the terminal it was started on, and does what it is told on the line.
fn screen(agents: usize, line: &str) {
    clock();
    rustix::process::setsid().unwrap();
    rustix::process::ioctl_tiocsctty(std::io::stdin()).unwrap();
    let mut line = UnixStream::connect(line).unwrap();
    let mut answers = line.try_clone().unwrap();
    let (news, heard) = unbounded_channel();
    let (asks, asked) = unbounded_channel();
    let told = BufReader::new(line.try_clone().unwrap());
    let fed = thread::Builder::new().name(FEEDER.into()).spawn(move || {
        let feed = Feed::start(agents, news, asked);
        writeln!(answers, "ready").unwrap();
        for told in told.lines().map_while(Result::ok) {
            match told.split_once(' ') {
                Some((_, seconds)) => {
                    let events = feed.feed(Duration::from_secs_f64(seconds.parse().unwrap()));
                    writeln!(answers, "{events}").unwrap();
                }
                None if told == "rest" => {
                    feed.rest();
                    writeln!(answers, "rests").unwrap();
                }
                None => return feed.end(),
            }
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let manner = ScreenOptions {
        theme: Theme { colour: true },
        plain: false,
        history: None,
        greeting: vec!["A session with a thousand agents.".into()],
        opens: Arc::new(|_, _| Command::new("true")),
        dir: "/".into(),
        clock,
    };
    let drawn = convoke_terminal::run(manner, Ends { news: heard, asks }, runtime.handle()).unwrap();
    fed.unwrap().join().unwrap();
    writeln!(line, "{} {}", drawn.frames, drawn.keys).unwrap();
}
