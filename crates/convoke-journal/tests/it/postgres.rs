//! What is special about a PostgreSQL journal: connections break, and servers have rules of their own.

use std::sync::Arc;
use std::time::Duration;

use convoke_journal::{Batch, Change, Changed, Error, FORMAT, Journal, Location, Options, Refusal, Update};

use crate::wire::{Proxy, Wire};
use crate::world::*;

async fn open(url: &str) -> Result<Journal, Error> {
    Journal::open(Location::Postgres(url.to_owned()), someone()).await
}

/// A journal that gives up soon.
async fn impatient(url: &str) -> Journal {
    let options = Options { outage: Duration::from_millis(400), ..someone() };
    Journal::open(Location::Postgres(url.to_owned()), options).await.unwrap()
}

/// Runs a case on a database of its own, which goes away also when the case fails.
pub(crate) async fn with_database<F: Future<Output = ()> + Send + 'static>(
    test: &str,
    case: impl FnOnce(Arc<Database>) -> F,
) {
    let Some(database) = Database::create(&format!("postgres::{test}")).await else { return };
    let database = Arc::new(database);
    let done = tokio::spawn(case(Arc::clone(&database))).await;
    if let Some(database) = Arc::into_inner(database) {
        database.remove().await;
    }
    done.unwrap();
}

#[tokio::test]
async fn an_append_whose_answer_is_lost_is_found_to_be_committed() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = open(&proxy.url).await.unwrap();
        let lease = own(&journal, "a").await;
        proxy.set(Wire::CutsAfter(9));
        assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
        // The same for a batch that moves nothing.
        let batch = Batch { results: vec![("r".into(), "{}".into())], ..Batch::default() };
        assert_eq!(journal.append(&lease, 1, &batch).await, Ok(1));
        proxy.set(Wire::Carries);
        assert_eq!(journal.append(&lease, 1, &one(2)).await, Ok(2));
        assert_eq!(events(&journal, "a").await, [event(1), event(2)]);
        assert!(journal.result("r").await.unwrap().is_some());
    };
    with_database("an_append_whose_answer_is_lost_is_found_to_be_committed", case).await;
}

#[tokio::test]
async fn an_append_that_never_reaches_the_server_is_given_up_in_the_end_and_has_changed_nothing() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = impatient(&proxy.url).await;
        let lease = own(&journal, "a").await;
        proxy.set(Wire::CutsBefore(usize::MAX));
        let lost = journal.append(&lease, 0, &one(1)).await.unwrap_err();
        assert!(matches!(lost, Error::Unavailable { .. }), "{lost:?}");
        assert!(lost.to_string().contains("then resume"), "{lost}");
        proxy.set(Wire::Carries);
        assert!(events(&journal, "a").await.is_empty());
        assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
    };
    with_database(
        "an_append_that_never_reaches_the_server_is_given_up_in_the_end_and_has_changed_nothing",
        case,
    )
    .await;
}

/// Adds an `x` to the state, and an event.
fn longer() -> Change {
    Change::new(|state| {
        Ok(Changed { state: format!("{}x", state.unwrap_or_default()), events: vec![event(1)] })
    })
}

#[tokio::test]
async fn an_update_whose_answer_is_lost_is_found_to_be_done_or_not() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = impatient(&proxy.url).await;
        let lease = own(&journal, "a").await;
        let ledger = stream("ledger");
        proxy.set(Wire::CutsAfter(9));
        assert_eq!(journal.update(&ledger, 1, &longer()).await.as_deref(), Ok("x"));
        let batch = Batch { updates: vec![Update { stream: ledger.clone(), change: longer() }], ..one(1) };
        let appended = journal.append_shared(&lease, 0, &batch).await.unwrap();
        assert_eq!((appended.seq, appended.states), (1, vec!["xx".to_owned()]));
        proxy.set(Wire::CutsBefore(usize::MAX));
        for lost in [
            journal.update(&ledger, 1, &longer()).await,
            journal.append(&lease, 1, &batch).await.map(|_| String::new()),
        ] {
            assert!(matches!(lost, Err(Error::Unavailable { .. })), "{lost:?}");
        }
        proxy.set(Wire::Carries);
        assert_eq!(journal.shared(&ledger).await.unwrap().as_deref(), Some("xx"));
        assert_eq!(events(&journal, "ledger").await.len(), 2);
    };
    with_database("an_update_whose_answer_is_lost_is_found_to_be_done_or_not", case).await;
}

#[tokio::test]
async fn tables_of_format_1_are_upgraded_once_by_whoever_comes_first() {
    let case = |database: Arc<Database>| async move {
        let old = open(&database.url).await.unwrap();
        let lease = own(&old, "a").await;
        old.append(&lease, 0, &one(1)).await.unwrap();
        let downgrade = "ALTER TABLE convoke.streams DROP COLUMN state;
            UPDATE convoke.meta SET value = 1 WHERE name = 'format'";
        database.run(downgrade).await;
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let url = database.url.clone();
            opening.spawn(async move {
                open(&url).await.unwrap().update(&stream("ledger"), 1, &longer()).await.unwrap();
            });
        }
        // A process that has it open goes on meanwhile.
        old.append(&lease, 1, &one(2)).await.unwrap();
        soon(opening.join_all()).await;
        assert_eq!(old.append(&lease, 2, &one(3)).await, Ok(3));
        let journal = open(&database.url).await.unwrap();
        assert_eq!(journal.shared(&stream("ledger")).await.unwrap().as_deref(), Some("xxxxxxxx"));
        assert_eq!(events(&journal, "a").await, [1, 2, 3].map(event));
    };
    with_database("tables_of_format_1_are_upgraded_once_by_whoever_comes_first", case).await;
}

#[tokio::test]
async fn a_flight_leaves_no_row_behind() {
    let case = |database: Arc<Database>| async move {
        let journal = open(&database.url).await.unwrap();
        // The division fails if the number of flights is another.
        let check = async |flights: u32| {
            let count = "(SELECT count(*) FROM convoke.streams WHERE stream LIKE 'flight:%')";
            database.run(&format!("SELECT 1 / (CASE WHEN {count} = {flights} THEN 1 ELSE 0 END)")).await;
        };
        let flight = journal.single_flight("key").await.unwrap();
        journal.prune(&[]).await.unwrap();
        check(1).await;
        flight.land().await.unwrap();
        check(0).await;
        let dead = Journal::open(Location::Postgres(database.url.clone()), somebody_gone()).await.unwrap();
        std::mem::forget(dead.single_flight("abandoned").await.unwrap());
        check(1).await;
        journal.prune(&[]).await.unwrap();
        check(0).await;
        let _flight = journal.single_flight("closed").await.unwrap();
        check(1).await;
        journal.close().await.unwrap();
        check(0).await;
    };
    with_database("a_flight_leaves_no_row_behind", case).await;
}

#[tokio::test]
async fn a_server_that_stays_away_is_unavailable_after_the_limit_and_works_when_it_is_back() {
    let case = |database: Arc<Database>| async move {
        let proxy = Proxy::start(&database).await;
        let journal = impatient(&proxy.url).await;
        let lease = own(&journal, "a").await;
        let mut outage = journal.outage();
        assert_eq!(*outage.borrow(), None);
        proxy.set(Wire::IsDown);
        for _ in 0..2 {
            let lost = journal.append(&lease, 0, &one(1)).await.unwrap_err();
            assert!(matches!(lost, Error::Unavailable { .. }), "{lost:?}");
            assert!(journal.load(&stream("a"), 0).await.is_err());
        }
        // The watcher has been told, and hears when it is over.
        assert!(outage.borrow_and_update().is_some());
        proxy.set(Wire::Carries);
        assert_eq!(journal.append(&lease, 0, &one(1)).await, Ok(1));
        soon(outage.wait_for(Option::is_none)).await.unwrap();
    };
    with_database("a_server_that_stays_away_is_unavailable_after_the_limit_and_works_when_it_is_back", case)
        .await;
}

#[tokio::test]
async fn a_server_that_takes_a_connection_and_says_nothing_is_given_up_after_the_limit() {
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("postgres://someone@{}/journal", silent.local_addr().unwrap());
    let options = Options { outage: Duration::from_secs(1), ..someone() };
    let refused = soon(Journal::open(Location::Postgres(url), options)).await.err().unwrap();
    assert!(
        matches!(&refused, Error::Unavailable { reason, .. } if reason.contains("waited for 1 s")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn many_who_create_the_tables_at_once_get_the_same_ones() {
    let case = |database: Arc<Database>| async move {
        let mut opening = tokio::task::JoinSet::new();
        for n in 0..8 {
            let url = database.url.clone();
            opening.spawn(async move {
                let journal = open(&url).await.unwrap();
                journal.submit(&input("a", &n.to_string(), ""), 1).await.unwrap();
            });
        }
        soon(opening.join_all()).await;
        assert_eq!(waiting(&open(&database.url).await.unwrap(), "a").await.len(), 8);
    };
    with_database("many_who_create_the_tables_at_once_get_the_same_ones", case).await;
}

#[tokio::test]
async fn a_newer_or_foreign_schema_is_refused() {
    let case = |database: Arc<Database>| async move {
        database.run("CREATE SCHEMA convoke; CREATE TABLE convoke.rides (n int)").await;
        let error = open(&database.url).await.err().unwrap();
        assert!(matches!(&error, Error::Refused { refusal: Refusal::Foreign { .. }, .. }), "{error:?}");
        database.run("DROP SCHEMA convoke CASCADE").await;
        drop(open(&database.url).await.unwrap());
        database.run("UPDATE convoke.meta SET value = 9 WHERE name = 'format'").await;
        let error = open(&database.url).await.err().unwrap();
        let newer = Refusal::Newer { found: 9, known: FORMAT };
        assert!(matches!(&error, Error::Refused { refusal, .. } if *refusal == newer), "{error:?}");
    };
    with_database("a_newer_or_foreign_schema_is_refused", case).await;
}

#[tokio::test]
async fn a_server_that_takes_no_writes_can_be_read() {
    let case = |database: Arc<Database>| async move {
        let journal = open(&database.url).await.unwrap();
        let lease = own(&journal, "a").await;
        journal.append(&lease, 0, &one(1)).await.unwrap();
        let config: tokio_postgres::Config = database.url.parse().unwrap();
        let name = config.get_dbname().unwrap();
        database.run(&format!("ALTER DATABASE {name} SET default_transaction_read_only TO on")).await;
        let journal = open(&database.url).await.unwrap();
        let refused = journal.own(&stream("b")).await.unwrap_err();
        assert!(matches!(refused, Error::CannotWrite { .. }), "{refused:?}");
        assert_eq!(events(&journal, "a").await, [event(1)]);
    };
    with_database("a_server_that_takes_no_writes_can_be_read", case).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_its_password_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("postgres://me:secret@/db?host={}", dir.path().display());
    let error = open(&url).await.err().unwrap();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(!error.to_string().contains("secret"), "{error}");
}
