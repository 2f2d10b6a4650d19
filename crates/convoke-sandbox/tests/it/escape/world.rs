//! The small machine that every attempt gets for itself: a home with keys, a project in it, a journal, a
//! configuration, the private directories of two agents, and what an attempt wants to have laid out besides.
//! It only lays out and looks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sandbox::{Access, Limits, Network, Policy};
use tempfile::TempDir;

/// Where worlds are made. Not in `/tmp`, which commands see replaced, so that an attempt fails for a better
/// reason.
pub(super) const WORLDS_VARIABLE: &str = "CONVOKE_TEST_WORLDS";

/// So small that a bomb which passes them does not hurt.
pub(super) const LIMITS: Limits =
    Limits { memory: 96 << 20, processes: 30, file_size: 2 << 20, open_files: 256 };

/// How long a look waits for something to show that is already under way.
const PATIENCE: Duration = Duration::from_millis(300);

/// Makes a call by its number. Perl would not pass on a text that it may not change.
const CALL: &str = "sub call { my @a = @_; my $r = syscall(shift(@a), @a); for (0..$#a) { eval { $_[$_ + 1] \
    = $a[$_] } } $r }";

/// A perl program does what stands between these in a child that stays, and ends itself once that was done.
const BEGIN: &str = "pipe(R,W); if (fork) { close W; <R>; exit 0 } close R;";
const STAY: &str = "close W; sleep 1 while 1;";

/// One machine in small.
pub(super) struct World {
    dir: TempDir,
    pub(super) access: Access,
    /// Appears in files that must not be read, and in nothing that a command is told.
    pub(super) secret: String,
    /// Names the processes and things of this world's attempt.
    pub(super) mark: String,
    /// A number of this world alone, of six digits.
    pub(super) number: u64,
    foreign: Option<Child>,
    tcp: Option<TcpListener>,
    udp: Option<UdpSocket>,
    streams: Vec<UnixListener>,
    datagrams: Vec<UnixDatagram>,
    /// Undone when the world goes.
    undo: Vec<String>,
    words: BTreeMap<&'static str, String>,
}

/// What a file looks like from outside; its change time tells of every change, also of attributes.
type Look = (u32, u32, u32, u64, u64, i64, i64, i64, i64);

/// Where worlds are made.
fn base() -> std::ffi::OsString {
    std::env::var_os(WORLDS_VARIABLE).unwrap_or(env!("CARGO_TARGET_TMPDIR").into())
}

/// Whether worlds stand in a temporary directory that every policy covers, as they do where the source tree
/// itself was put there: then even the fallback set holds some attempts that only have to read what lies
/// elsewhere.
pub(super) fn stand_in_what_is_covered() -> bool {
    ["/tmp", "/var/tmp", "/run"].iter().any(|covered| std::path::Path::new(&base()).starts_with(covered))
}

impl World {
    pub(super) fn new(access: Access) -> Self {
        let base = base();
        std::fs::create_dir_all(&base).unwrap();
        let dir = tempfile::Builder::new().prefix("world").tempdir_in(base).unwrap();
        let random = RandomState::new().build_hasher().finish();
        let world = Self {
            dir,
            access,
            secret: format!("KEY{:016x}", RandomState::new().build_hasher().finish()),
            mark: format!("mark{random:016x}"),
            number: 100_000 + random % 900_000,
            foreign: None,
            tcp: None,
            udp: None,
            streams: Vec::new(),
            datagrams: Vec::new(),
            undo: Vec::new(),
            words: BTreeMap::new(),
        };
        for directory in [
            "home/project/src",
            "home/.ssh",
            "home/.aws",
            "home/.cache/tool",
            "journal",
            "config",
            "elsewhere/dir",
        ] {
            std::fs::create_dir_all(world.at(directory)).unwrap();
        }
        for private in ["state/a", "state/b"] {
            std::fs::create_dir_all(world.at(private)).unwrap();
            std::fs::set_permissions(world.at(private), PermissionsExt::from_mode(0o700)).unwrap();
        }
        for file in [
            "home/.ssh/key",
            "home/.aws/credentials",
            "home/.cache/tool/token",
            "journal/db",
            "config/config.toml",
        ] {
            world.put(file, &format!("{}\n", world.secret));
        }
        world.put("state/b/notes", &format!("{}\n", world.secret));
        for file in ["elsewhere/file", "elsewhere/dir/inner", "home/.bashrc", "home/project/src/main"] {
            world.put(file, "public\n");
        }
        world
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    pub(super) fn policy(&self) -> Policy {
        if self.access == Access::Off {
            return Policy::off(self.at("home/project"));
        }
        Policy {
            access: self.access,
            network: Network::Off,
            limits: LIMITS,
            workspace: self.at("home/project"),
            private: self.at("state/a"),
            hidden: ["home", "journal", "config", "state"].map(|name| self.at(name)).into(),
            readable: Vec::new(),
            caches: vec![self.at("home/.cache/tool")],
            masked: vec![self.at("home/.cache/tool/token")],
            own_git: None,
        }
    }

    /// A template with the words of this world in it: `{elsewhere}`, `{mark}`, `{foreign}`, `{sys:mount}` and
    /// so on.
    pub(super) fn fill(&self, template: &str) -> String {
        let mut text = template.to_owned();
        for name in ["home", "elsewhere", "journal", "config", "state"] {
            text = text.replace(&format!("{{{name}}}"), &self.at(name).display().to_string());
        }
        text = text.replace("{project}", &self.at("home/project").display().to_string());
        if text.contains("call(") {
            text = text.replace("perl -e '", &format!("perl -e '{CALL} "));
        }
        text = text.replace("{begin}", BEGIN).replace("{stay}", STAY);
        text = text.replace("{mark}", &self.mark).replace("{number}", &self.number.to_string());
        for (word, value) in &self.words {
            text = text.replace(word, value);
        }
        for (name, number) in super::attempt::CALLS {
            text = text.replace(&format!("{{sys:{name}}}"), &number.to_string());
        }
        text
    }

    /// Whether an attempt finds the secret in what a command printed.
    pub(super) fn told(&self, text: &str) -> bool {
        text.contains(&self.secret)
    }

    /// What stands outside of everything that may be changed.
    pub(super) fn outside(&self) -> BTreeMap<PathBuf, Look> {
        let mut seen = BTreeMap::new();
        let mut open: Vec<PathBuf> =
            ["elsewhere", "home", "journal", "config", "state/b"].map(|at| self.at(at)).into();
        while let Some(path) = open.pop() {
            if self.access != Access::ReadOnly && path == self.at("home/project") {
                continue;
            }
            let Ok(about) = path.symlink_metadata() else { continue };
            let look = (
                about.mode(),
                about.uid(),
                about.gid(),
                about.size(),
                about.nlink(),
                about.mtime(),
                about.mtime_nsec(),
                about.ctime(),
                about.ctime_nsec(),
            );
            if about.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            seen.insert(path, look);
        }
        seen
    }

    /// The living processes of this world's attempt, found by its mark in their arguments.
    pub(super) fn marked(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let ours = |path: &PathBuf| {
            let text = std::fs::read(path.join("cmdline")).unwrap_or_default();
            text.windows(self.mark.len()).any(|window| window == self.mark.as_bytes())
        };
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit()))
            .filter(ours)
            .collect()
    }

    /// Ends the processes of the attempt that are still there, and those that are just being started.
    pub(super) fn end_marked(&self) {
        let mut quiet = 0;
        let mut marked = self.marked();
        if marked.is_empty() {
            return;
        }
        while quiet < 3 {
            quiet = if marked.is_empty() { quiet + 1 } else { 0 };
            for path in marked {
                let pid = path.file_name().unwrap().to_owned();
                let _ = Command::new("kill").args([OsStr::new("-9"), &pid]).stderr(Stdio::null()).status();
            }
            std::thread::sleep(std::time::Duration::from_millis(30));
            marked = self.marked();
        }
    }

    /// Bytes stored below the world.
    pub(super) fn stored(&self) -> u64 {
        let sum = std::cell::Cell::new(0);
        self.anywhere(|about| {
            sum.set(sum.get() + about.blocks() * 512);
            false
        });
        sum.get()
    }

    /// Waits a little until something is so.
    pub(super) fn soon(&self, condition: impl Fn(&Self) -> bool) -> bool {
        let since = Instant::now();
        while !condition(self) {
            if since.elapsed() > PATIENCE {
                return false;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        true
    }

    /// Whether a process of the attempt holds a descriptor whose name contains this.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.descriptors().iter().any(|link| link.contains(name))
    }

    /// The names of all descriptors of the attempt's processes.
    pub(super) fn descriptors(&self) -> Vec<String> {
        let all = self
            .marked()
            .into_iter()
            .flat_map(|path| std::fs::read_dir(path.join("fd")).into_iter().flatten());
        all.flatten()
            .filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
            .collect()
    }

    /// The bytes of memory that the attempt's processes have, all together.
    pub(super) fn resident(&self) -> u64 {
        let size = |path: PathBuf| {
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        self.marked().into_iter().filter_map(size).sum::<u64>() * 1024
    }

    /// Whether something below the world is of this kind.
    pub(super) fn anywhere(&self, wanted: impl Fn(&std::fs::Metadata) -> bool) -> bool {
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(path) = open.pop() {
            for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                if wanted(&about) {
                    return true;
                }
                if about.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        false
    }

    /// A process of the same user that has nothing to do with any sandbox. It has the secret in its
    /// environment, a file with the secret as its input, a file elsewhere as its output, and notes a harmless
    /// signal elsewhere.
    pub(super) fn stranger(&mut self) {
        let output = std::fs::File::options().append(true).open(self.at("elsewhere/file")).unwrap();
        let code =
            r#"$SIG{URG} = sub { open(F, ">", "noted") }; open(F, ">", "up"); close F; sleep 1 while 1"#;
        let mut stranger = Command::new("perl")
            .args(["-e", code, &format!("stranger-{}", self.number)])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SECRET", &self.secret)
            .current_dir(self.at("elsewhere"))
            .stdin(std::fs::File::open(self.at("home/.ssh/key")).unwrap())
            .stdout(output)
            .spawn()
            .unwrap();
        let since = Instant::now();
        while !self.at("elsewhere/up").exists() {
            assert!(since.elapsed() < crate::LONG && stranger.try_wait().unwrap().is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", stranger.id())).unwrap();
        let fields: Vec<&str> = stat[stat.rfind(')').unwrap()..].split(' ').collect();
        // The environment's place is the fiftieth field, and the first two are before the parenthesis.
        self.words.insert("{environment}", fields[48].to_owned());
        self.words.insert("{foreign}", stranger.id().to_string());
        // Without a sandbox the signal goes to the stranger alone, and to no other process of the user.
        let everybody = if self.access == Access::Off { stranger.id().to_string() } else { "-1".to_owned() };
        self.words.insert("{everybody}", everybody);
        self.foreign = Some(stranger);
    }

    /// A word of the stranger's status.
    pub(super) fn of_stranger(&self, name: &str) -> String {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.words["{foreign}"])).unwrap_or_default();
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    }

    /// A file of the stranger in `/proc`.
    pub(super) fn in_stranger(&self, name: &str) -> String {
        let bytes = std::fs::read(format!("/proc/{}/{name}", self.words["{foreign}"])).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A TCP and a UDP listener of the host.
    pub(super) fn listen(&mut self, address: &str) {
        let tcp = TcpListener::bind((address, 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind((address, 0)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_read_timeout(Some(PATIENCE)).unwrap();
        self.words.insert("{tcp}", port.to_string());
        self.words.insert("{udp}", udp.local_addr().unwrap().port().to_string());
        self.tcp = Some(tcp);
        self.udp = Some(udp);
    }

    /// Sockets of the unix family: by path elsewhere, and by an abstract name that is the mark.
    pub(super) fn listen_here(&mut self) {
        let named = SocketAddr::from_abstract_name(&self.mark).unwrap();
        self.streams = vec![
            UnixListener::bind(self.at("elsewhere/s")).unwrap(),
            UnixListener::bind_addr(&named).unwrap(),
        ];
        let named = SocketAddr::from_abstract_name(format!("{}d", self.mark)).unwrap();
        self.datagrams = vec![
            UnixDatagram::bind(self.at("elsewhere/d")).unwrap(),
            UnixDatagram::bind_addr(&named).unwrap(),
        ];
        for stream in &self.streams {
            stream.set_nonblocking(true).unwrap();
        }
        for datagram in &self.datagrams {
            datagram.set_nonblocking(true).unwrap();
        }
    }

    /// Whether a command reached one of the host's sockets.
    pub(super) fn reached(&self) -> bool {
        let mut buffer = [0; 64];
        self.tcp.as_ref().is_some_and(|tcp| tcp.accept().is_ok())
            || self.streams.iter().any(|stream| stream.accept().is_ok())
            || self.datagrams.iter().any(|datagram| datagram.recv(&mut buffer).is_ok())
            || self.udp.as_ref().is_some_and(|udp| udp.recv(&mut buffer).is_ok())
    }

    /// Runs a program text of the host's own, with this world's words.
    pub(super) fn host(&self, command: &str) -> String {
        // An attempt may have carried the project away.
        let project = self.at("home/project");
        let output = Command::new("bash")
            .args(["-c", &self.fill(command)])
            .current_dir(if project.is_dir() { &project } else { Path::new("/") })
            .env("HOME", self.at("home"))
            .env("SECRET", &self.secret)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Gives a name to what the host's program text prints.
    pub(super) fn host_word(&mut self, word: &'static str, command: &str) {
        let said = self.host(command);
        self.words.insert(word, said.trim().to_owned());
    }

    /// What the host does when the world goes.
    pub(super) fn undo(&mut self, command: &str) {
        let command = self.fill(command);
        self.undo.push(command);
    }

    /// A repository in the project, with one commit.
    pub(super) fn repository(&mut self) {
        self.host(
            "git init -q -b main . && git add -A && git -c user.name=t -c user.email=t@t commit -qm first && \
                git status",
        );
        assert!(self.at("home/project/.git/HEAD").exists(), "git is needed");
    }

    /// What a person does later, in their own terminal, without thinking of anything.
    pub(super) fn later_git(&self) {
        self.host(
            "echo more >> src/main; git status; git add -A; git -c user.name=t -c user.email=t@t \
            commit -qm more; git checkout -q -b next; git diff HEAD~1",
        );
    }

    pub(super) fn exists(&self, name: impl AsRef<OsStr>) -> bool {
        self.at("").join(Path::new(name.as_ref())).symlink_metadata().is_ok()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for command in std::mem::take(&mut self.undo) {
            self.host(&command);
        }
        if let Some(mut stranger) = self.foreign.take() {
            let _ = stranger.kill();
            let _ = stranger.wait();
        }
        convoke_sandbox::remove_private(&self.at("state/a"));
    }
}
