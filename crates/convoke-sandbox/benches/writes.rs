//! What asking before writes costs: the same work in a shell whose writes are asked for, at a gate that
//! answers at once, and in one whose writes are not. Rounds are interleaved; medians are printed.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Access, HelperPath, HoldChoice, LayerSet, Limits, Network, OutputSpec, Policy, RunCommand, Shell,
    ShellConfig, Templates, WriteGate, WritePath, hold, probe, remove_private,
};

const ROUNDS: usize = 3;

/// What is done, by name, and how many times one command does it.
const WORK: &[(&str, usize, &str)] = &[
    ("true", 1, "/bin/true"),
    ("bash_reads", 5_000, "for ((i = 0; i < 5000; i++)); do : < given; done"),
    ("bash_to_dev_null", 5_000, "for ((i = 0; i < 5000; i++)); do : > /dev/null; done"),
    ("bash_makes_files", 5_000, "mkdir old; for ((i = 0; i < 5000; i++)); do : > made$i; done"),
    (
        "bash_makes_files_in_a_new_directory",
        5_000,
        "mkdir m; for ((i = 0; i < 5000; i++)); do : > m/$i; done",
    ),
    ("bash_writes_one_file", 5_000, "for ((i = 0; i < 5000; i++)); do : > one; done"),
    ("perl_makes_files", 5_000, "perl -e 'for $i (1..5000) { open my $f, \">\", \"made$i\" or die }'"),
    ("perl_reads", 5_000, "perl -e 'for $i (1..5000) { open my $f, \"<\", \"given\" or die }'"),
];

#[derive(Debug, Default)]
struct Open(AtomicUsize);

impl WriteGate for Open {
    fn before_write(&self, _: Vec<WritePath>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

fn main() {
    // This executable is also the helper under which commands live.
    convoke_sandbox::helper_entry(|| Box::new(str::to_owned));
    tokio::runtime::Runtime::new().unwrap().block_on(compare());
}

async fn compare() {
    let place = std::env::temp_dir().join(format!("convoke-bench-writes-{}", std::process::id()));
    let helper = HelperPath::new(std::env::current_exe().unwrap());
    let layers = probe(&helper, None, Path::new("/nowhere")).await.unwrap();
    for set in [LayerSet::Namespaces, LayerSet::Landlock] {
        if hold(&layers, Access::Workspace, &Network::Off, Some(set)).is_ok_and(|held| held.set == Some(set))
        {
            one_set(&helper, &place, set).await;
        } else {
            println!("not measured: {set:?}");
        }
    }
    remove_private(&place);
}

async fn one_set(helper: &HelperPath, place: &Path, set: LayerSet) {
    let templates = Templates::default();
    let mut starts = [Vec::new(), Vec::new()];
    let mut times = vec![[Vec::new(), Vec::new()]; WORK.len()];
    let mut asked = vec![0; WORK.len()];
    for round in 0..ROUNDS {
        for traced in [false, true] {
            let private = place.join(format!("private-{set:?}-{round}-{traced}"));
            let tree = place.join(format!("tree-{set:?}-{round}-{traced}"));
            std::fs::create_dir_all(&private).unwrap();
            std::fs::create_dir_all(&tree).unwrap();
            let gate = Arc::new(Open::default());
            let writes: Arc<dyn WriteGate> = Arc::clone(&gate) as _;
            let config = config(helper, &templates, set, &tree, &private, traced.then_some(writes));
            let since = Instant::now();
            let mut shell = Shell::start(config).await.unwrap();
            starts[usize::from(traced)].push(since.elapsed());
            assert_eq!(shell.is_traced(), traced);
            for (index, (_, _, work)) in WORK.iter().enumerate() {
                run(&mut shell, "rm -rf * && echo x > given", place).await;
                gate.0.store(0, Ordering::Relaxed);
                let since = Instant::now();
                run(&mut shell, work, place).await;
                times[index][usize::from(traced)].push(since.elapsed());
                asked[index] = gate.0.load(Ordering::Relaxed);
            }
            shell.stop().await.unwrap();
        }
    }
    let [plain, traced] = starts.each_mut().map(|times| median(times));
    println!("{set:?} start {plain:?} traced {traced:?}");
    for (((name, count, _), times), asked) in WORK.iter().zip(&mut times).zip(asked) {
        let [plain, traced] = times.each_mut().map(|times| median(times));
        let more = traced.saturating_sub(plain) / u32::try_from(*count).unwrap();
        println!("{set:?} {name} {plain:?} traced {traced:?}, {more:?} more each, asked {asked} times");
    }
}

fn config(
    helper: &HelperPath,
    templates: &Templates,
    set: LayerSet,
    tree: &Path,
    private: &Path,
    writes: Option<Arc<dyn WriteGate>>,
) -> ShellConfig {
    let policy = Policy {
        access: Access::Workspace,
        network: Network::Off,
        limits: Limits::default(),
        workspace: tree.to_owned(),
        private: private.to_owned(),
        hidden: vec!["/root".into(), "/home".into()],
        readable: Vec::new(),
        caches: Vec::new(),
        masked: Vec::new(),
        own_git: None,
    };
    ShellConfig {
        helper: helper.clone(),
        cwd: tree.to_owned(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        restored: None,
        hold: HoldChoice::Best,
        policy,
        layers: Some(set),
        templates: templates.clone(),
        promise: Default::default(),
        writes,
    }
}

async fn run(shell: &mut Shell, command: &str, place: &Path) {
    let output = OutputSpec::new(PathBuf::from(place).join("full"));
    let command = RunCommand { command: command.to_owned(), deadline: Duration::from_secs(600), output };
    let finished = shell.run(command, std::future::pending()).await.unwrap();
    assert_eq!(finished.ending, convoke_sandbox::Ending::Exited(0), "{finished:?}");
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
