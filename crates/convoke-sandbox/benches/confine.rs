//! What confinement costs: a `true` inside over one outside, the start of a confined shell over an unconfined
//! one, the throwaway copy of 10,000 files by overlay and file by file, and a worker from its start to its
//! end over a plain program. Rounds are interleaved; medians and ratios are printed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Access, CopyCap, HelperPath, HoldChoice, LayerSet, Limits, Network, OutputSpec, Policy, RunCommand,
    Shell, ShellConfig, Sight, Templates, Worker, WorkerLimits, hold, make_copy, probe, remove_private,
};

const ROUNDS: usize = 30;
const COMMANDS: usize = 200;
const FILES: usize = 10_000;

/// One way to run a shell, by name.
type Way = (&'static str, Option<LayerSet>, Access);

const WAYS: [Way; 5] = [
    ("off", None, Access::Off),
    ("namespaces_workspace", Some(LayerSet::Namespaces), Access::Workspace),
    ("namespaces_read_only", Some(LayerSet::Namespaces), Access::ReadOnly),
    ("landlock_workspace", Some(LayerSet::Landlock), Access::Workspace),
    ("landlock_read_only", Some(LayerSet::Landlock), Access::ReadOnly),
];

fn main() {
    // This executable is also the helper under which commands live.
    convoke_sandbox::helper_entry(|| Box::new(str::to_owned));
    tokio::runtime::Runtime::new().unwrap().block_on(compare());
}

async fn compare() {
    let place = std::env::temp_dir().join(format!("convoke-bench-{}", std::process::id()));
    std::fs::create_dir_all(place.join("small/src")).unwrap();
    std::fs::write(place.join("small/src/main"), "code\n").unwrap();
    fill(&place.join("large"));
    let ways = possible().await;
    let helper = helper();
    let since = Instant::now();
    probe(&helper, None, Path::new("/nowhere")).await.unwrap();
    println!("probe {:?}", since.elapsed());
    let mut starts = vec![Vec::new(); ways.len()];
    let mut commands = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS {
        for (index, way) in ways.iter().enumerate() {
            let private = place.join(format!("private-{round}-{index}"));
            let (mut shell, took) = start(&helper, way, &place.join("small"), &private).await;
            starts[index].push(took);
            if round < 5 {
                for _ in 0..COMMANDS / 5 {
                    let since = Instant::now();
                    run(&mut shell, "/bin/true", &place).await;
                    commands[index].push(since.elapsed());
                }
            }
            shell.stop().await.unwrap();
            remove_private(&private);
        }
    }
    workers(&helper).await;
    report("start", &ways, &mut starts);
    report("true", &ways, &mut commands);
    guards(&helper, &place, &ways).await;
    copies(&helper, &place, &ways).await;
    remove_private(&place);
}

/// The start of a shell that may write a tree of 10,000 files, the first time and again, and the mounts that
/// it stands on.
async fn guards(helper: &HelperPath, place: &Path, ways: &[Way]) {
    let writing: Vec<Way> = ways.iter().copied().filter(|way| way.2 == Access::Workspace).collect();
    let mut first = vec![Vec::new(); writing.len()];
    let mut again = vec![Vec::new(); writing.len()];
    for round in 0..5 {
        for (index, way) in writing.iter().enumerate() {
            // What was found about a tree is believed for a while, by its path.
            let tree = place.join(format!("tree-{round}-{index}"));
            std::fs::rename(place.join("large"), &tree).unwrap();
            for times in [&mut first, &mut again] {
                let private = place.join(format!("guard-{round}-{index}"));
                let (mut shell, took) = start(helper, way, &tree, &private).await;
                times[index].push(took);
                if round == 0 && times[index].len() == 1 {
                    let output = OutputSpec::new(place.join("mounts"));
                    let command = RunCommand {
                        command: "wc -l < /proc/self/mountinfo".to_owned(),
                        deadline: Duration::from_secs(60),
                        output,
                    };
                    let finished = shell.run(command, std::future::pending()).await.unwrap();
                    println!("mounts_{} {}", way.0, finished.output.text.trim());
                }
                shell.stop().await.unwrap();
                remove_private(&private);
            }
            std::fs::rename(&tree, place.join("large")).unwrap();
        }
    }
    report("start_writing_10000_files_first", &writing, &mut first);
    report("start_writing_10000_files_again", &writing, &mut again);
}

/// From nothing to a worker's first reply and its end, beside a program that does nothing.
async fn workers(helper: &HelperPath) {
    let mut worked = Vec::new();
    let mut plain = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..ROUNDS {
        let since = Instant::now();
        let mut worker = Worker::start(helper, WorkerLimits::default()).await.unwrap();
        worker.ask("question", Duration::from_secs(60)).await.unwrap();
        let again = Instant::now();
        worker.ask("question", Duration::from_secs(60)).await.unwrap();
        asked.push(again.elapsed());
        worker.stop().await;
        worked.push(since.elapsed());
        let since = Instant::now();
        assert!(tokio::process::Command::new("/bin/true").status().await.unwrap().success());
        plain.push(since.elapsed());
    }
    let worked = median(&mut worked);
    let plain = median(&mut plain);
    let asked = median(&mut asked);
    let ratio = worked.as_secs_f64() / plain.as_secs_f64();
    println!("worker_start_ask_stop {worked:?} ({ratio:.2} times a spawn of /bin/true, median of {ROUNDS})");
    println!("worker_ask {asked:?} (median of {ROUNDS})");
}

/// From nothing to the first listing of the whole tree, and the making of the copy alone.
async fn copies(helper: &HelperPath, place: &Path, ways: &[Way]) {
    let read_only: Vec<Way> =
        ways.iter().copied().filter(|way| way.2 == Access::ReadOnly || way.1.is_none()).collect();
    let mut begun = vec![Vec::new(); read_only.len()];
    let mut alone = Vec::new();
    let mut plain = Vec::new();
    for round in 0..5 {
        for (index, way) in read_only.iter().enumerate() {
            let private = place.join(format!("large-{round}-{index}"));
            let (shell, took) = start(helper, way, &place.join("large"), &private).await;
            begun[index].push(took);
            shell.stop().await.unwrap();
            remove_private(&private);
        }
        let to = place.join("copy");
        let since = Instant::now();
        make_copy(&place.join("large"), &to, CopyCap { files: 1 << 20, bytes: 1 << 40 }, &Sight::Everything)
            .unwrap();
        alone.push(since.elapsed());
        remove_private(&to);
        let since = Instant::now();
        assert!(Command::new("cp").arg("-a").args([&place.join("large"), &to]).status().unwrap().success());
        plain.push(since.elapsed());
        remove_private(&to);
        for entry in std::fs::read_dir(place).unwrap().flatten() {
            // The mark of a finished copy stands beside it.
            if entry.file_name().to_string_lossy().starts_with("copy") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
    report("start_with_10000_files", &read_only, &mut begun);
    let ours = median(&mut alone);
    let cp = median(&mut plain);
    let ratio = ours.as_secs_f64() / cp.as_secs_f64();
    println!("copy_of_10000_files {ours:?} ({ratio:.2} times cp -a, median of {})", alone.len());
}

/// The ways that this machine allows; the others are named.
async fn possible() -> Vec<Way> {
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    let holds = |way: &Way| {
        let held = hold(&layers, way.2, &Network::Off, way.1);
        let holds = held.as_ref().is_ok_and(|held| held.set == way.1);
        if !holds {
            println!("not measured: {}", way.0);
        }
        holds
    };
    WAYS.into_iter().filter(holds).collect()
}

async fn start(helper: &HelperPath, way: &Way, workspace: &Path, private: &Path) -> (Shell, Duration) {
    std::fs::create_dir_all(private).unwrap();
    let policy = Policy {
        access: way.2,
        network: Network::Off,
        limits: Limits::default(),
        workspace: workspace.to_owned(),
        private: private.to_owned(),
        hidden: vec!["/root".into(), "/home".into()],
        readable: Vec::new(),
        caches: Vec::new(),
        masked: Vec::new(),
        own_git: None,
    };
    let config = ShellConfig {
        helper: helper.clone(),
        cwd: workspace.to_owned(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        restored: None,
        hold: HoldChoice::Best,
        policy,
        layers: way.1,
        templates: Templates::default(),
        promise: Default::default(),
        writes: None,
    };
    let since = Instant::now();
    let shell = Shell::start(config).await.unwrap();
    (shell, since.elapsed())
}

async fn run(shell: &mut Shell, command: &str, place: &Path) {
    let output = OutputSpec::new(place.join("full"));
    let command = RunCommand { command: command.to_owned(), deadline: Duration::from_secs(60), output };
    shell.run(command, std::future::pending()).await.unwrap();
}

fn report(what: &str, ways: &[Way], times: &mut [Vec<Duration>]) {
    let medians: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    for (way, time) in ways.iter().zip(&medians) {
        let ratio = time.as_secs_f64() / medians[0].as_secs_f64();
        println!("{what}_{} {time:?} ({ratio:.2} times off, median of {})", way.0, times[0].len());
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn fill(at: &Path) {
    for directory in 0..100 {
        let directory = at.join(format!("d{directory}"));
        std::fs::create_dir_all(&directory).unwrap();
        for file in 0..FILES / 100 {
            std::fs::write(directory.join(format!("f{file}")), vec![b'x'; 2_000]).unwrap();
        }
    }
}

fn helper() -> HelperPath {
    HelperPath::new(std::env::current_exe().unwrap())
}
