//! What every command is called, takes and does, in words for a person. It holds no rule: reading and helping
//! are elsewhere.

use super::command::CommandRow;

/// Every command, in the order help shows them.
pub const COMMANDS: &[CommandRow] = &[
    CommandRow {
        name: "help",
        arguments: "[command]",
        about: "all commands and keys, or more about one",
        more: "Without a word it lists everything you can type or press here.\nExample: /help budget",
    },
    CommandRow {
        name: "new",
        arguments: "",
        about: "begin a new session; this one is kept",
        more: "The new session knows nothing of this one. What was said here stays in the\n\
               journal: /resume brings it back, /sessions lists it.\nExample: /new",
    },
    CommandRow {
        name: "mode",
        arguments: "[on|off]",
        about: "show or switch orchestration mode",
        more: "With the mode on, the lead may fan work out to many agents without being\n\
               asked each time, within the budget. Nothing of the conversation is paid for\n\
               again when it is switched.\nExample: /mode on",
    },
    CommandRow {
        name: "effort",
        arguments: "[level]",
        about: "show or set how hard the lead thinks",
        more: "It holds from the next message on. A higher level costs more tokens and\n\
               time. Without a level it says what is set and what the model knows.\nExample: /effort high",
    },
    CommandRow {
        name: "model",
        arguments: "[name]",
        about: "show or change the model of the lead",
        more: "It holds from the next message on. Another model cannot use what was cached\n\
               for this one: it reads the whole conversation anew, once, at full price.\nExample: /model \
               claude-opus-4-8",
    },
    CommandRow {
        name: "agents",
        arguments: "",
        about: "open the fleet: all agents of this session",
        more: "The same as Ctrl-O. Enter looks into an agent, Esc comes back.\nExample: /agents",
    },
    CommandRow {
        name: "team",
        arguments: "",
        about: "who is in the team and what each is at",
        more: "Lists the teammates by name with their role, state and unread mail.\nExample: /team",
    },
    CommandRow {
        name: "tasks",
        arguments: "",
        about: "the board: open, claimed, blocked, done",
        more: "Shows every task with its owner and what it waits for.\nExample: /tasks",
    },
    CommandRow {
        name: "inbox",
        arguments: "",
        about: "look at the mail; nothing is taken",
        more: "It looks and takes nothing: a letter you have seen here is still delivered\n\
               to its reader.\nExample: /inbox",
    },
    CommandRow {
        name: "findings",
        arguments: "",
        about: "what was found, with evidence and verdict",
        more: "The most serious first. Each says whether an agent tried to refute it and\n\
               what came of that.\nExample: /findings",
    },
    CommandRow {
        name: "workflows",
        arguments: "[name args]",
        about: "list the workflows, or start one",
        more: "Without a name it lists those of this directory, yours and the built-in ones.\n\
               With a name it starts that one; what follows is handed to it. Quotes keep\n\
               words together.\nExample: /workflows review \"src and tests\"",
    },
    CommandRow {
        name: "sessions",
        arguments: "",
        about: "earlier sessions and their runs",
        more: "The newest first, with what each came to and cost. /resume takes one up.\nExample: /sessions",
    },
    CommandRow {
        name: "budget",
        arguments: "[usd N|tokens N|agents N|minutes N]",
        about: "show what may be spent, or grant a new total",
        more: "The number is the new total for the session, not an addition to it; what is\n\
               spent already counts. Without a word it shows every cap and what is used.\nExample: /budget \
               usd 5",
    },
    CommandRow {
        name: "cost",
        arguments: "",
        about: "what was spent, by run and by model",
        more: "Tokens read, written and had from the cache, in dollars where the price is\nknown.\nExample: \
            /cost",
    },
    CommandRow {
        name: "compact",
        arguments: "[focus]",
        about: "summarise the conversation to make room",
        more: "The lead goes on from a summary; the full history stays in the journal. Words\n\
               behind it say what the summary must keep.\nExample: /compact the open questions about the \
               parser",
    },
    CommandRow {
        name: "resume",
        arguments: "[session]",
        about: "go on with an earlier session",
        more: "Any unique beginning of its id will do. What was paid for is not paid again.\nExample: \
            /resume s_4k2q",
    },
    CommandRow {
        name: "fork",
        arguments: "[session]",
        about: "go on in a copy; the original stays as it is",
        more: "Without a session it copies this one. The copy begins with the same words and\n\
               pays nothing for them; team, tasks and running work stay behind.\nExample: /fork",
    },
    CommandRow {
        name: "unsay",
        arguments: "",
        about: "take back what waits and was not heard yet",
        more: "What you wrote while work was under way and the lead has not heard yet is\n\
               taken back; Up brings it to hand again. Stop the work first: Esc.\nExample: /unsay",
    },
    CommandRow {
        name: "export",
        arguments: "[dir]",
        about: "write this session to files",
        more: "Writes the conversation, every event and the team into the directory; without\n\
               one below Convoke's own, which it names.\nExample: /export \"my notes\"",
    },
    CommandRow {
        name: "diff",
        arguments: "",
        about: "what this session changed in files",
        more: "Shows the changes since the session began, line by line.\nExample: /diff",
    },
    CommandRow {
        name: "undo",
        arguments: "",
        about: "take back what this session changed in files",
        more: "Puts the files back as they were; what others changed meanwhile is\n\
               left alone and named. The conversation is not taken back.\nExample: /undo",
    },
    CommandRow {
        name: "editor",
        arguments: "",
        about: "write the next message in $EDITOR",
        more: "What you save stands in the input afterwards; nothing is sent before Enter.\nExample: /editor",
    },
    CommandRow {
        name: "plain",
        arguments: "",
        about: "draw nothing any more: lines in, lines out",
        more: "For screen readers and simple terminals: nothing moves, everything is a line.\nExample: \
            /plain",
    },
    CommandRow {
        name: "quit",
        arguments: "",
        about: "leave; the session can be resumed",
        more: "What is under way is stopped safely first. The same as Ctrl-D in an empty\ninput.\nExample: \
            /quit",
    },
];

/// The groups in which help shows them: a heading, and the first command that stands under it.
pub(super) const GROUPS: &[(&str, &str)] = &[
    ("Begin", "help"),
    ("The lead", "mode"),
    ("Look", "agents"),
    ("Spend", "budget"),
    ("The conversation", "compact"),
    ("Files", "diff"),
    ("The terminal", "editor"),
];

/// The keys, as help shows them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; Alt-Enter, Ctrl-J or \\ before it: new line"),
    ("Esc", "stop safely; Esc again cuts off"),
    ("Tab", "complete a command, a file or a name"),
    ("Up, Down", "earlier messages; Ctrl-R searches them"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "cut a word, to the start, to the end"),
    ("Ctrl-Y", "put back what was cut"),
    ("Ctrl-O", "the fleet, and back"),
    ("Ctrl-Z", "suspend; fg comes back"),
    ("Ctrl-D", "leave, if nothing is written; twice"),
    ("Shift-Tab", "switch orchestration mode on or off"),
    ("/", "the commands as a menu; letters find one"),
    ("/NAME words", "run the workflow NAME with those words"),
    ("!command", "your own shell, outside of the sandbox"),
    ("//text, !!text", "say a text that begins with a slash or a !"),
];
