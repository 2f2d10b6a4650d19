//! Asks the person at the terminal. Where nobody sits there is nobody to ask, and the answer is no.

use convoke_runtime::{Asker, Question};

use crate::render::{Look, Still, clean};
use crate::stdio::tell;

/// More lines than a person reads before answering.
const MOST_SHOWN: usize = 12;

/// Who answers questions here.
pub(super) fn asker(look: Look) -> Option<Asker> {
    look.is_interactive().then(|| Asker::new(|question| async move { answer(&question).await }))
}

async fn answer(question: &Question) -> bool {
    let mut text = format!("\n{}\n", clean(&question.what));
    for detail in question.details.iter().take(MOST_SHOWN) {
        let line = clean(detail.lines().next().unwrap_or_default());
        text.push_str(&format!("  - {line}\n"));
    }
    if let Some(more) = question.details.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!("  … and {more} more\n"));
    }
    let _still = Still::keep();
    tell(&format!("{text}Run it? [y/N] "));
    // Reading a line blocks, and nothing else may wait for it.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let said = read.await.ok().and_then(Result::ok).unwrap_or_default();
    matches!(said.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
