//! Control from another process by way of the journal: pausing, stopping, and answering a program's question.

use std::sync::{Arc, Mutex};

use convoke_journal::Location;
use convoke_kernel::{AgentId, Outcome, ProgramStatus};
use convoke_runtime::{Asker, Control, DriveMode, DriveOutcome, Notice, STOPPED_BY, Stop};
use convoke_sim::{SimConfig, says};
use serde_json::json;
use tokio::sync::mpsc;

use crate::programs::{program, rig, run, script, value};
use crate::support::{Rig, postgres, within};
use crate::team::Team;

/// Two agents at once, and one after them.
const BODY: &str = "const both = await parallel([() => agent('first'), () => agent('second')])\nreturn \
    [...both, await agent('third')]";

async fn started(rig: &Rig, body: &str) -> AgentId {
    let input = json!({"script": script(body)});
    rig.life(None).await.start_call(rig.start(), "workflow probe", &input).await.unwrap()
}

/// Asks for this from another process while two agents are at work, and lets their replies go once it is
/// heard.
async fn controlled(rig: &Rig, control: Control) -> (AgentId, DriveOutcome) {
    let first = rig.sim.hold("first", 0, 1);
    let second = rig.sim.hold("second", 0, 1);
    let lead = started(rig, BODY).await;
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let runtime = rig.live().await;
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher));
    let ask = async {
        first.entered().await;
        second.entered().await;
        let controller = rig.controller().await;
        let key = controller.ask(&lead, control).await.unwrap();
        assert!(!controller.is_heard(&lead, &key).await.unwrap());
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Controlled { control: heard } if heard == control) {
                break;
            }
        }
        first.release();
        second.release();
        (controller, key)
    };
    let (ended, (controller, key)) = within(async { tokio::join!(drive, ask) }).await;
    assert!(controller.is_heard(&lead, &key).await.unwrap(), "it is acknowledged");
    (lead, ended.unwrap())
}

/// Paused amid its first step, a program goes on in another process with no agent asked twice.
async fn paused_and_resumed(rig: Rig) {
    let (lead, ended) = controlled(&rig, Control::Pause).await;
    assert_eq!((ended.outcome, ended.asked, ended.parked), (None, Some(Control::Pause), false));
    let counts = program(&rig, &lead).await.counts();
    assert_eq!((counts.ok, counts.open), (2, 0), "what was under way is finished, and nothing new has begun");
    assert_eq!(program(&rig, &lead).await.status(), None);
    let ended = rig.resume(&lead).await.unwrap();
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    assert_eq!(ended.asked, None, "the pause was for the process before");
    let done = program(&rig, &lead).await;
    assert_eq!((value(&done), done.pass()), (json!(["did first", "did second", "did third"]), 1));
    assert_eq!(rig.sim.requests().len(), 3, "nobody is asked twice");
}

#[tokio::test]
async fn a_pause_from_another_process_finishes_what_is_under_way_and_a_resume_goes_on() {
    paused_and_resumed(rig(|prompt| vec![says(&format!("did {prompt}"))]).await).await;
}

#[tokio::test]
async fn a_pause_reaches_its_session_by_way_of_postgresql_too() {
    let Some(place) = postgres("a_pause_reaches_its_session_by_way_of_postgresql_too") else { return };
    let team = Team::new([says("never asked")]).callees(|prompt| vec![says(&format!("did {prompt}"))]);
    let mut rig = Rig::on(place, SimConfig::new(team)).await;
    rig.fan_out = Some(Rig::fanning_out());
    paused_and_resumed(rig).await;
}

#[tokio::test]
async fn a_stop_from_another_process_is_recorded_and_a_resume_begins_a_new_pass() {
    let rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let (lead, ended) = controlled(&rig, Control::Stop).await;
    assert_eq!((ended.outcome, ended.asked), (None, Some(Control::Stop)));
    assert_eq!(program(&rig, &lead).await.status(), Some(ProgramStatus::Stopped));
    let ended = rig.resume(&lead).await.unwrap();
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    let done = program(&rig, &lead).await;
    assert_eq!((done.pass(), done.counts().reused), (2, 2), "what was done is served");
    assert_eq!(value(&done), json!(["did first", "did second", "did third"]));
    assert_eq!(rig.sim.requests().len(), 3, "nobody is asked twice");
}

#[tokio::test]
async fn a_program_that_nobody_drives_is_stopped_by_whoever_says_so() {
    let rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let body = "const did = await agent('first')\nreturn [did, await checkpoint('Go on?')]";
    let (lead, ended, waiting) = run(&rig, body, None).await;
    assert!(ended.parked);
    let spec = waiting.spec().unwrap();
    let controller = rig.controller().await;
    let stopped = controller.stop_programs(&spec.session, STOPPED_BY).await.unwrap();
    assert_eq!(
        stopped.iter().map(|run| run.to_string()).collect::<Vec<_>>(),
        std::slice::from_ref(&spec.run)
    );
    assert_eq!(program(&rig, &lead).await.status(), Some(ProgramStatus::Stopped));
    assert!(
        controller.stop_programs(&spec.session, STOPPED_BY).await.unwrap().is_empty(),
        "it is stopped once"
    );
    let asked_again = rig.resume(&lead).await.unwrap();
    assert!(asked_again.parked, "the new pass asks the same again");
    assert_eq!((program(&rig, &lead).await.pass(), rig.sim.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_pause_that_nobody_heard_is_gone_when_the_session_is_taken_up() {
    let rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
    let lead = started(&rig, "return await agent('first')").await;
    let controller = rig.controller().await;
    let key = controller.ask(&lead, Control::Pause).await.unwrap();
    let runtime = rig.life(None).await;
    let ended = within(runtime.drive(&lead, DriveMode::New, Stop::never(), None)).await.unwrap();
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    assert!(controller.is_heard(&lead, &key).await.unwrap());
}

#[tokio::test]
async fn a_lead_without_a_program_is_paused_between_its_turns() {
    let script = convoke_sim::Script::new()
        .conversation("*", [convoke_sim::calls("bash", json!({"command": "echo ran >> log"})), says("done")]);
    let rig = Rig::on(Location::Memory, script).await;
    let hold = rig.sim.hold("go", 0, 2);
    let runtime = rig.live().await;
    let lead = runtime.start(rig.start(), "go").await.unwrap();
    let (watcher, mut notices) = mpsc::unbounded_channel();
    let drive = runtime.drive(&lead, DriveMode::New, Stop::never(), Some(watcher));
    let ask = async {
        hold.entered().await;
        rig.controller().await.ask(&lead, Control::Stop).await.unwrap();
        while let Some(notice) = notices.recv().await {
            if matches!(notice, Notice::Draining { .. }) {
                break;
            }
        }
        hold.release();
    };
    let (ended, ()) = within(async { tokio::join!(drive, ask) }).await;
    let ended = ended.unwrap();
    assert_eq!((ended.outcome, ended.asked, rig.read("log").as_str()), (None, Some(Control::Stop), ""));
    let ended = rig.resume(&lead).await.unwrap();
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert_eq!((rig.read("log").as_str(), rig.sim.requests().len()), ("ran\n", 2));
}

/// A person at a terminal who says this to programs.
fn person(says: Option<&'static str>) -> (Asker, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let asker =
        Asker::new(|_| async { panic!("nobody has to agree to anything") }).answering(move |question| {
            heard.lock().unwrap().push(format!("{} {}", question.call, question.question));
            async move { says.map(str::to_owned) }
        });
    (asker, asked)
}

#[tokio::test]
async fn a_question_of_a_program_is_asked_where_somebody_sits_and_waits_if_they_leave_it() {
    for (says_this, parked) in [(Some("the person"), false), (None, true)] {
        let mut rig = rig(|prompt| vec![says(&format!("did {prompt}"))]).await;
        let (asker, asked) = person(says_this);
        rig.asker = Some(asker);
        let body = "return await Promise.all([checkpoint('Who decides?\\nSay it.'), agent('meanwhile')])";
        let (_, ended, program) = run(&rig, body, None).await;
        assert_eq!(ended.parked, parked, "{ended:?}");
        assert_eq!(*asked.lock().unwrap(), ["1 Who decides?\nSay it."]);
        assert_eq!(program.counts().ok, 1, "others go on");
        match says_this {
            Some(text) => assert_eq!(value(&program), json!([text, "did meanwhile"])),
            None => assert_eq!(program.questions().len(), 1),
        }
    }
}
