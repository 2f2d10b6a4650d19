//! `convoke cost`: tokens and dollars, by session and by model, as the journal recorded them. An unknown
//! price is said to be unknown and never counted as nothing.

use std::collections::BTreeMap;

use convoke_kernel::Usage;
use serde_json::{Value, json};

use super::table::{Column, Table};
use crate::args::{CostArgs, OutputFormat};
use crate::catalog::{self, Catalog, Entry, ListedSession};
use crate::failure::{Exit, Failure};
use crate::render::{dollars, tokens};
use crate::settings::Settings;
use crate::stdio;

/// What something came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    usage: Usage,
    /// The part whose price is known, in nano-dollars.
    known_nano: u64,
    /// How many agents have calls of unknown price.
    unknown: usize,
    /// What requests that were cut off may have cost beside it, in nano-dollars.
    unconfirmed_nano: u64,
}

impl Bill {
    fn add(&mut self, entry: &Entry) {
        self.usage.add(&entry.summary.usage);
        match entry.summary.cost_nano {
            Some(nano) => self.known_nano = self.known_nano.saturating_add(nano),
            None => self.unknown += 1,
        }
    }

    /// The bill of all agents of a session.
    pub(crate) fn of_listed(listed: &ListedSession) -> Self {
        let mut bill = Self { unconfirmed_nano: listed.unconfirmed_nano, ..Self::default() };
        listed.agents.iter().for_each(|entry| bill.add(entry));
        bill
    }

    /// The dollars, and that there are more of them if some price is not known.
    pub(crate) fn dollars(&self) -> String {
        let known = match (self.unknown, self.known_nano) {
            (0, nano) => dollars(Some(nano)),
            (_, 0) => dollars(None),
            (_, nano) => format!("{} + unknown", dollars(Some(nano))),
        };
        match self.unconfirmed_nano {
            0 => known,
            nano => format!("{known} and up to {} unconfirmed", dollars(Some(nano))),
        }
    }

    /// The exact nano-dollars, if every price is known.
    pub(crate) fn nano(&self) -> Option<u64> {
        (self.unknown == 0).then_some(self.known_nano)
    }

    /// All tokens, read and written.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.prompt_tokens() + self.usage.output_tokens
    }

    fn cells(&self) -> [String; 5] {
        let written = self.usage.cache_write_5m_tokens + self.usage.cache_write_1h_tokens;
        let counts =
            [self.usage.input_tokens, self.usage.cache_read_tokens, written, self.usage.output_tokens];
        let [fresh, read, written, out] = counts.map(tokens);
        [fresh, read, written, out, self.dollars()]
    }

    /// The bill for programs.
    pub(crate) fn object(&self) -> Value {
        json!({
            "usage": self.usage,
            "cost_nano": self.nano(),
            "cost_usd": self.nano().map(|nano| nano as f64 / 1e9),
            "known_nano": self.known_nano,
            "unconfirmed_nano": self.unconfirmed_nano,
            "unknown_prices": self.unknown,
        })
    }
}

/// Shows what sessions cost.
pub(crate) async fn run(settings: &Settings, args: &CostArgs) -> Result<Exit, Failure> {
    let journal = catalog::open_existing(settings).await?;
    let mut catalog = Catalog::load(settings, journal.as_ref()).await?;
    if let Some(journal) = &journal {
        let wanted = args
            .session
            .as_deref()
            .map(|given| catalog.find(given))
            .transpose()?
            .map(|listed| listed.session.clone());
        catalog
            .look_for_unconfirmed(journal, |listed| {
                wanted.as_ref().is_none_or(|wanted| listed.session == *wanted)
            })
            .await;
    }
    let sessions: Vec<&ListedSession> = match &args.session {
        Some(given) => vec![catalog.find(given)?],
        None => catalog.sessions.iter().collect(),
    };
    match settings.output {
        OutputFormat::Text => text(&sessions, catalog.id_length())?,
        OutputFormat::Json => {
            stdio::put_json(&format!("{:#}\n", object(&sessions)))?;
        }
        OutputFormat::Jsonl => return Err(super::no_jsonl("cost")),
    }
    Ok(Exit::Done)
}

fn by_model<'a>(sessions: &[&'a ListedSession]) -> BTreeMap<&'a str, Bill> {
    let mut models: BTreeMap<&str, Bill> = BTreeMap::new();
    for entry in sessions.iter().flat_map(|listed| &listed.agents) {
        models.entry(&entry.summary.model).or_default().add(entry);
    }
    models
}

fn total(sessions: &[&ListedSession]) -> Bill {
    let unconfirmed_nano = sessions.iter().map(|listed| listed.unconfirmed_nano).fold(0, u64::saturating_add);
    let mut total = Bill { unconfirmed_nano, ..Bill::default() };
    sessions.iter().flat_map(|listed| &listed.agents).for_each(|entry| total.add(entry));
    total
}

fn text(sessions: &[&ListedSession], id_length: usize) -> Result<(), Failure> {
    if sessions.is_empty() {
        stdio::tell("no sessions yet\n");
        return Ok(());
    }
    let columns = vec![
        Column::kept("SESSION"),
        Column::kept("MODEL"),
        Column::kept("FRESH").right(),
        Column::kept("READ").right(),
        Column::kept("WRITTEN").right(),
        Column::kept("OUT").right(),
        Column::kept("DOLLARS").right(),
    ];
    let mut table = Table::new(columns);
    let mut add = |session: &str, model: &str, bill: &Bill| {
        table.row([session.to_owned(), model.to_owned()].into_iter().chain(bill.cells()).collect());
    };
    for listed in sessions {
        let short: String = listed.session.as_str().chars().take(id_length).collect();
        for (model, bill) in by_model(&[*listed]) {
            add(&short, model, &bill);
        }
        if listed.unconfirmed_nano > 0 {
            add(
                &short,
                "and cut off",
                &Bill { unconfirmed_nano: listed.unconfirmed_nano, ..Bill::default() },
            );
        }
    }
    if sessions.len() > 1 {
        for (model, bill) in by_model(sessions) {
            add("all", model, &bill);
        }
        add("total", "", &total(sessions));
    }
    stdio::put(&table.render(stdio::width()))?;
    if total(sessions).unknown > 0 {
        stdio::tell(
            "a price is unknown: state it under [models.\"NAME\"] in your configuration; later calls will be \
                priced\n",
        );
    }
    Ok(())
}

fn object(sessions: &[&ListedSession]) -> Value {
    let with = |name: &str, value: &str, bill: &Bill| {
        let mut object = json!({ name: value });
        if let (Some(object), Value::Object(bill)) = (object.as_object_mut(), bill.object()) {
            object.extend(bill);
        }
        object
    };
    let of_listed = |listed: &&ListedSession| {
        let mut object = with("run", listed.session.as_str(), &Bill::of_listed(listed));
        let models = by_model(&[*listed]);
        object["models"] = models.iter().map(|(model, bill)| with("model", model, bill)).collect();
        object
    };
    json!({
        "schema_version": 1,
        "runs": sessions.iter().map(of_listed).collect::<Vec<_>>(),
        "models": by_model(sessions).iter().map(|(model, bill)| with("model", model, bill)).collect::<Vec<_>>(),
        "total": total(sessions).object(),
    })
}
