//! What neighbours in one transaction can do to each other: nothing, unless the database undoes them all.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::Poll;

use super::*;
use crate::sqlite::{file, ops};
use crate::{Change, Changed, Process, StreamId};

/// A committer on a new journal whose thread is busy until the sender is dropped, so that what comes is one
/// batch.
async fn busy(
    dir: &tempfile::TempDir,
) -> (Committer, mpsc::Sender<()>, impl Future<Output = Result<(), Error>>) {
    let path = dir.path().join("journal.db");
    let me = Process::current([1; 10]);
    file::prepare(&path, &me).unwrap();
    let committer = Committer::start(path, me, Waits::default()).unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let (sender, answer) = oneshot::channel();
    let work = move |_: &Connection| {
        let _ = gate.recv();
        Ok(())
    };
    let job = Box::new(Work { work, place: String::new(), done: None, sender });
    committer.queue.lock().unwrap().as_ref().unwrap().send(job).unwrap();
    (committer, release, async move { answer.await.unwrap() })
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

fn write<'a>(committer: &'a Committer, sql: &'static str, then: Result<(), Error>) -> Answer<'a> {
    Box::pin(committer.write(move |rows| {
        rows.execute_batch(sql)?;
        Ok(then.clone()?)
    }))
}

/// Lets each be queued, in this order, before the gate opens, and returns their answers.
async fn together(writes: Vec<Answer<'_>>, release: mpsc::Sender<()>) -> Vec<Result<(), Error>> {
    let mut writes = writes;
    for write in &mut writes {
        poll_fn(|context| {
            assert!(write.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    drop(release);
    let mut answers = Vec::new();
    for write in writes {
        answers.push(pin!(write).await);
    }
    answers
}

async fn names(committer: &Committer) -> Vec<String> {
    let names = |rows: &Connection| {
        let mut statement = rows.prepare("SELECT name FROM meta WHERE name LIKE 't%' ORDER BY name")?;
        let names = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(names)
    };
    committer.write(names).await.unwrap()
}

fn wrong() -> Error {
    Error::BadText { what: "this one" }
}

#[tokio::test]
async fn a_write_that_fails_half_way_undoes_itself_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (committer, release, first) = busy(&dir).await;
    let writes = vec![
        write(&committer, "INSERT INTO meta VALUES ('t1', 1)", Ok(())),
        write(&committer, "INSERT INTO meta VALUES ('t2', 2)", Err(wrong())),
        write(&committer, "INSERT INTO meta VALUES ('t1', 3)", Ok(())),
        write(&committer, "INSERT INTO meta VALUES ('t4', 4)", Ok(())),
    ];
    let answers = together(writes, release).await;
    assert_eq!(first.await, Ok(()));
    assert_eq!(answers[0], Ok(()));
    assert_eq!(answers[1], Err(wrong()));
    assert!(matches!(answers[2], Err(Error::Corrupt { .. })), "{answers:?}");
    assert_eq!(answers[3], Ok(()));
    assert_eq!(names(&committer).await, ["t1", "t4"]);
}

#[tokio::test]
async fn when_the_database_undoes_the_batch_everybody_is_told_and_the_next_batch_works() {
    let dir = tempfile::tempdir().unwrap();
    let (committer, release, first) = busy(&dir).await;
    let writes = vec![
        write(&committer, "INSERT INTO meta VALUES ('t1', 1)", Ok(())),
        write(&committer, "INSERT INTO meta VALUES ('t2', 2); ROLLBACK", Ok(())),
        write(&committer, "INSERT INTO meta VALUES ('t3', 3)", Ok(())),
    ];
    let answers = together(writes, release).await;
    for answer in std::iter::once(first.await).chain(answers) {
        assert!(matches!(answer, Err(Error::CannotWrite { .. })), "{answer:?}");
    }
    assert!(names(&committer).await.is_empty());
    committer.write(|rows| Ok(rows.execute_batch("INSERT INTO meta VALUES ('t5', 5)")?)).await.unwrap();
    assert_eq!(names(&committer).await, ["t5"]);
}

#[tokio::test]
async fn what_is_queued_is_done_before_the_thread_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (committer, release, _first) = busy(&dir).await;
    let writes = vec![write(&committer, "INSERT INTO meta VALUES ('t1', 1)", Ok(()))];
    assert_eq!(together(writes, release).await, [Ok(())]);
    committer.close();
    assert!(matches!(committer.write(|_| Ok(())).await, Err(Error::Unavailable { .. })));
    let rows = file::connect(&dir.path().join("journal.db")).unwrap();
    assert_eq!(
        rows.query_row("SELECT value FROM meta WHERE name = 't1'", [], |row| row.get::<_, i64>(0)),
        Ok(1)
    );
}

#[tokio::test]
async fn of_two_updates_in_one_batch_the_second_sees_what_the_first_has_left() {
    let dir = tempfile::tempdir().unwrap();
    let (committer, release, first) = busy(&dir).await;
    let longer = |expected: &'static str, then: Result<(), Error>| -> Answer<'_> {
        let change = Change::new(move |state| {
            assert_eq!(state.unwrap_or_default(), expected);
            Ok(Changed { state: format!("{expected}x"), events: vec![] })
        });
        Box::pin(committer.write(move |rows| {
            ops::update(rows, &StreamId::new("shared")?, 1, &change)?;
            Ok(then.clone()?)
        }))
    };
    // The one that fails leaves nothing to be seen.
    let writes =
        vec![longer("", Ok(())), longer("x", Err(wrong())), longer("x", Ok(())), longer("xx", Ok(()))];
    let answers = together(writes, release).await;
    assert_eq!(first.await, Ok(()));
    assert_eq!(answers, [Ok(()), Err(wrong()), Ok(()), Ok(())]);
}

#[test]
fn an_index_that_a_stopped_process_keeps_from_being_read_is_locked_and_not_damaged() {
    let failed = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_PROTOCOL);
    let told = Fault::Sql(rusqlite::Error::SqliteFailure(failed, None)).reading("journal.db");
    assert!(matches!(told, Error::Unavailable { .. }), "{told:?}");
}
