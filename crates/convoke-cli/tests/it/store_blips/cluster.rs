//! A PostgreSQL cluster of a test's own, which can be stopped, started and counted in. It ends with the test.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::NoTls;

pub(super) struct Cluster {
    dir: TempDir,
    bin: PathBuf,
}

impl Cluster {
    /// Where there is no PostgreSQL the test is skipped, loudly.
    pub(super) fn start(test: &str) -> Option<Self> {
        // The same sign by which the other tests know whether PostgreSQL is to be had.
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
        let newest = bins.filter(|bin| bin.join("initdb").exists()).max();
        let (Some(_), Some(bin)) = (std::env::var_os("CONVOKE_TEST_POSTGRES"), newest) else {
            let line = format!(
                "SKIPPED: {test}: CONVOKE_TEST_POSTGRES is not set, or PostgreSQL is not installed\n"
            );
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        };
        // A socket's path may have 107 bytes at most, so it is not under a TMPDIR that may be long.
        let dir = tempfile::Builder::new().prefix("convoke-blips.").tempdir_in("/tmp").unwrap();
        if is_root() {
            assert!(Command::new("chown").arg("postgres").arg(dir.path()).status().unwrap().success());
        }
        let cluster = Self { dir, bin };
        cluster.run("initdb", &["-U", "convoke", "-A", "trust", "-E", "UTF8", "--locale=C"]);
        cluster.up();
        Some(cluster)
    }

    pub(super) fn up(&self) {
        let dir = self.dir.path().display().to_string();
        let options = format!("-k {dir} -c listen_addresses=''");
        self.run("pg_ctl", &["-w", "-t", "60", "-l", &format!("{dir}/log"), "-o", &options, "start"]);
    }

    /// `immediate` is a crash, `fast` a tidy end.
    pub(super) fn down(&self, mode: &str) {
        self.run("pg_ctl", &["-w", "-m", mode, "stop"]);
    }

    fn run(&self, program: &str, args: &[&str]) {
        let status = self.command(program, args).status().unwrap();
        assert!(status.success(), "{program} {args:?}: {status}");
    }

    /// PostgreSQL refuses to run as root, so root hands the cluster to a harmless user.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let program = self.bin.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.arg("-D").arg(self.dir.path().join("data")).args(args).current_dir(Path::new("/"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(super) fn url(&self, database: &str) -> String {
        format!("postgres://convoke@/{database}?host={}", self.dir.path().display())
    }

    pub(super) async fn create(&self, database: &str) {
        assert!(count(&self.url("postgres"), &format!("CREATE DATABASE {database}")).await.is_ok());
    }

    /// Ends all connections to a database; says how many.
    pub(super) async fn terminate(&self, database: &str) -> i64 {
        let others = format!("FROM pg_stat_activity WHERE datname = '{database}'");
        let query = format!("SELECT count(pg_terminate_backend(pid)) {others}");
        count(&self.url("postgres"), &query).await.unwrap()
    }

    /// Counts the connections to a database again and again, as long as it is not dropped.
    pub(super) fn watch(&self, database: &str) -> Watch {
        let url = self.url("postgres");
        let most = Arc::new(AtomicI64::new(0));
        let query = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        let seen = Arc::clone(&most);
        let task = tokio::spawn(async move {
            loop {
                // A server that is away has no connections.
                let now = count(&url, &query).await.unwrap_or(0);
                seen.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Watch { most, task }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be down already.
        let _ = self.command("pg_ctl", &["-w", "-m", "immediate", "stop"]).status();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

pub(super) struct Watch {
    most: Arc<AtomicI64>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// The most connections that were seen at once.
    pub(super) fn most(self) -> i64 {
        self.task.abort();
        self.most.load(Ordering::SeqCst)
    }
}

/// The number that a query comes to, 0 if it comes to none.
async fn count(url: &str, query: &str) -> Result<i64, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let driver = tokio::spawn(connection);
    let rows = client.simple_query(query).await?;
    drop(client);
    let _ = driver.await;
    let number = rows.iter().find_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    Ok(number.unwrap_or(0))
}
