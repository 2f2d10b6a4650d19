//! Letters that members write, and looking at those that wait. Looking does not consume.

use convoke_kernel::{LetterKind, Member, QUEUE};

use super::{Act, ActContext, Done, describe};
use crate::error::Error;
use crate::team::shared;

/// One letter to one member.
pub(super) fn send(scene: &ActContext<'_>, to: &str, text: &str, urgent: bool) -> Done {
    let to = to.trim();
    if text.trim().is_empty() {
        return Err("Not sent: the text is empty.".to_owned());
    }
    let reader = scene.roster.recipient(to).map_err(|refusal| refusal.to_string())?;
    let mut letter = scene.letter(&reader.name, 0, LetterKind::Message, text)?;
    letter.urgent = urgent;
    let how = if urgent { " It interrupts the command that is running, if one is." } else { "" };
    let said =
        format!("Sent message to {} ({}).{how} {}", reader.name, letter.id, describe::reads_it(reader));
    Ok(Act { letters: vec![letter], ..Act::says(said) })
}

/// One letter to every other member.
pub(super) fn broadcast(scene: &ActContext<'_>, text: &str) -> Done {
    if text.trim().is_empty() {
        return Err("Not sent: the text is empty.".to_owned());
    }
    let reachable =
        |member: &&Member| member.name != scene.me.name && scene.roster.recipient(&member.name).is_ok();
    let (full, readers): (Vec<&Member>, Vec<&Member>) =
        scene.roster.members().filter(reachable).partition(|member| member.waiting >= QUEUE);
    let names = |members: &[&Member]| {
        members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let left_out = match full.is_empty() {
        true => String::new(),
        false => {
            format!(
                " Not to {}: {QUEUE} letters wait there already; try again when they have been read.",
                names(&full)
            )
        }
    };
    if readers.is_empty() {
        let why = if full.is_empty() { " There is nobody else in the team." } else { &left_out };
        return Err(format!("Sent to nobody.{why}"));
    }
    let letter = |(index, member): (usize, &&Member)| {
        scene.letter(&member.name, index as u64, LetterKind::Broadcast, text)
    };
    let letters = readers.iter().enumerate().map(letter).collect::<Result<Vec<_>, _>>()?;
    let said = format!("Sent broadcast to {} ({}).{left_out}", letters.len(), names(&readers));
    Ok(Act { letters, ..Act::says(said) })
}

/// The letters that wait for the caller.
pub(super) async fn inbox(scene: &ActContext<'_>) -> Result<Done, Error> {
    let letters = shared::waiting_letters(&scene.parent.config.journal, &scene.parent.id).await?;
    let delivered = "Letters are delivered to you by themselves with the next thing you read; there is no \
        need to look for them.";
    if letters.is_empty() {
        return Ok(Ok(Act::says(format!("No letter waits for you. {delivered}"))));
    }
    let quoted: Vec<String> =
        letters.iter().map(|letter| describe::quoted_letter(letter, scene.at)).collect();
    let count = describe::count(letters.len(), "letter waits", "letters wait");
    Ok(Ok(Act::says(format!("{count} for you. {delivered}\n\n{}", quoted.join("\n\n")))))
}
