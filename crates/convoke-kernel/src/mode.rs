//! Orchestration mode: a switch of the session, and when the model is told of it, and in which
//! form. The state moves only when a reply to a request that told the model is recorded, so that a
//! failed request leaves everything as it was.

use serde::{Deserialize, Serialize};

/// User turns from one reminder to the next.
const REFRESH_EVERY: u32 = 10;

/// What the model is told about the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// The mode is on, and what that means.
    Entry,
    /// It still is.
    Refresher,
    /// It is off.
    Exit,
}

/// Where the switch stands and what the model knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    on: bool,
    /// The model has been told that the mode is on.
    announced: bool,
    /// The model is to be told that it is off.
    exit_owed: bool,
    /// User turns since it was told last.
    since: u32,
}

impl Mode {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, announced: false, exit_owed: false, since: 0 }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// A person turned the switch. Turning it to where it is does nothing.
    pub(crate) fn set(&mut self, on: bool) {
        if on == self.on {
            return;
        }
        self.on = on;
        // Off is news only to a model that was told of on; on again before the next turn takes the news back.
        self.exit_owed = !on && self.announced;
    }

    /// What the next user turn is to carry.
    pub(crate) fn owed(&self) -> Option<Section> {
        if self.exit_owed {
            Some(Section::Exit)
        } else if self.on && !self.announced {
            Some(Section::Entry)
        } else if self.on && self.since >= REFRESH_EVERY {
            Some(Section::Refresher)
        } else {
            None
        }
    }

    /// What the history says of the mode: that it is on, in whichever form, or nothing that still counts.
    pub(crate) fn told(&self) -> Option<Section> {
        self.announced.then_some(Section::Entry)
    }

    /// Goes on with a history in which this was said of the mode last.
    pub(crate) fn recall(&mut self, told: Option<Section>) {
        self.announced = matches!(told, Some(Section::Entry | Section::Refresher));
        self.exit_owed = !self.on && self.announced;
    }

    /// A new history begins, in which nothing of the mode has been said.
    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.on);
    }

    /// The first reply to a user turn that carried this is recorded.
    pub(crate) fn answered(&mut self, carried: Option<Section>) {
        match carried {
            Some(Section::Exit) => {
                self.announced = false;
                self.exit_owed = false;
            }
            Some(Section::Entry) => {
                self.announced = true;
                self.since = 0;
            }
            Some(Section::Refresher) => self.since = 0,
            None => {}
        }
        self.since = self.since.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a session: `+` and `-` turn the switch, `.` is a user turn that is answered, `x` one that fails.
    /// Gives what each turn carried: `E`ntry, `R`efresher, e`X`it or `_`.
    fn play(start: bool, script: &str) -> String {
        let mut mode = Mode::new(start);
        let mut told = String::new();
        for step in script.chars() {
            match step {
                '+' => mode.set(true),
                '-' => mode.set(false),
                _ => {
                    let carried = mode.owed();
                    told.push(match carried {
                        Some(Section::Entry) => 'E',
                        Some(Section::Refresher) => 'R',
                        Some(Section::Exit) => 'X',
                        None => '_',
                    });
                    if step == '.' {
                        mode.answered(carried);
                    }
                }
            }
        }
        told
    }

    #[test]
    fn d2_7_d2_8_the_entry_comes_on_turn_1_and_the_refresher_on_turns_11_and_21() {
        assert_eq!(play(true, "......................"), "E_________R_________R_");
    }

    #[test]
    fn d2_3_setting_the_mode_to_what_it_is_does_nothing() {
        assert_eq!(play(true, "+.+.+."), "E__");
        assert_eq!(play(false, "-.-."), "__");
    }

    #[test]
    fn d2_4_off_is_told_only_if_on_was() {
        assert_eq!(play(true, ".-.."), "EX_");
        assert_eq!(play(true, "-.."), "__");
    }

    #[test]
    fn d2_5_off_then_on_sends_nothing() {
        assert_eq!(play(true, ".-+.."), "E__");
        assert_eq!(play(true, ".-+-+-.."), "EX_");
    }

    #[test]
    fn d2_9_off_a_turn_and_on_again_sends_the_full_entry_again() {
        assert_eq!(play(true, ".-.+.."), "EXE_");
    }

    #[test]
    fn a_turn_that_fails_moves_nothing() {
        assert_eq!(play(true, "xx.xx."), "EEE___");
        assert_eq!(play(true, ".-xx.x"), "EXXX_");
        assert_eq!(play(true, ".-x+x."), "EX__");
        assert_eq!(play(true, ".........xxx.x."), "E____________RR");
    }
}
