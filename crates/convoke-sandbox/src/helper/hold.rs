//! Reaching the surest hold on everything below: the init of a pid namespace, or else a subreaper. It never
//! ends in between: a namespace that could not be completed is given up as a whole.

use std::io::{self, Read, Write};

use crate::sys::{self, Pid};
use crate::wire::{HoldChoice, ProcessHold};

/// Which process we are after the attempt.
pub(crate) enum Role {
    /// The one that serves.
    Init(ProcessHold),
    /// The one that started init and only waits for its end.
    Outer(Pid),
}

/// What init writes when its namespaces stand; anything else is the reason why they do not.
const COMPLETE: &str = "complete";

/// Reaches a hold. In the namespace form this returns twice: once as each role, in two processes.
pub(crate) fn reach(choice: HoldChoice) -> Result<Role, String> {
    let why = match choice {
        HoldChoice::Subreaper => "it was not asked for".to_owned(),
        HoldChoice::Best => {
            let mut why = String::new();
            // Root first tries without a user namespace, because within one it could not change owners any
            // more.
            let attempts: &[bool] = if sys::effective_ids().0 == 0 { &[false, true] } else { &[true] };
            for &new_user in attempts {
                match attempt(new_user) {
                    Ok(role) => return Ok(role),
                    Err(error) => why = error,
                }
            }
            why
        }
    };
    adopt(why).map(Role::Init)
}

/// Becomes the one that adopts orphans, for want of a namespace.
pub(crate) fn adopt(why: String) -> Result<ProcessHold, String> {
    sys::become_subreaper().map_err(|error| format!("orphans cannot be adopted: {error}"))?;
    // Without this a command could take the helper's socket over.
    let _ = sys::refuse_tracing();
    Ok(ProcessHold::Subreaper { why })
}

fn attempt(new_user: bool) -> Result<Role, String> {
    let (mut reader, mut writer) = io::pipe().map_err(|error| format!("no pipe: {error}"))?;
    let (user, group) = sys::effective_ids();
    match sys::fork_into_namespaces(new_user).map_err(|error| format!("no pid namespace: {error}"))? {
        None => {
            drop(reader);
            let (entered, text) = match enter(new_user.then_some((user, group))) {
                Ok(()) => (true, COMPLETE.to_owned()),
                Err(error) => (false, error),
            };
            if writer.write_all(text.as_bytes()).is_err() || !entered {
                std::process::exit(1);
            }
            Ok(Role::Init(ProcessHold::PidNamespace))
        }
        Some(init) => {
            drop(writer);
            let mut said = String::new();
            // A read that fails leaves `said` incomplete, which is treated as a failure below.
            let _ = reader.read_to_string(&mut said);
            if said == COMPLETE {
                let _ = sys::refuse_tracing();
                return Ok(Role::Outer(init));
            }
            let _ = sys::reap(init, sys::Waiting::Block);
            Err(if said.is_empty() { "the namespace's init ended at once".to_owned() } else { said })
        }
    }
}

/// Completes the namespaces from within.
fn enter(map: Option<(u32, u32)>) -> Result<(), String> {
    sys::die_with_parent().map_err(|error| format!("no death signal: {error}"))?;
    if let Some((user, group)) = map {
        map_ids(user, group)?;
    }
    sys::mount_own_proc().map_err(|error| format!("no own /proc in the pid namespace: {error}"))?;
    if std::process::id() != 1 {
        return Err("the pid namespace has another init".to_owned());
    }
    // Only now: once tracing is refused, the files above belong to another user.
    sys::refuse_tracing().map_err(|error| format!("tracing cannot be refused: {error}"))
}

/// In a new user namespace: this user and group stay what they are.
pub(crate) fn map_ids(user: u32, group: u32) -> Result<(), String> {
    // A kernel without this file does not ask for it either.
    let _ = std::fs::write("/proc/self/setgroups", "deny");
    for (file, id) in [("/proc/self/uid_map", user), ("/proc/self/gid_map", group)] {
        std::fs::write(file, format!("{id} {id} 1"))
            .map_err(|error| format!("{file} was refused: {error}"))?;
    }
    Ok(())
}
