/**
 * The globals of a workflow script, for editors. Put this line at the top of a script, or list the file in a jsconfig.json:
 *
 *     /// <reference path="./convoke-workflow.d.ts" />
 *
 * A script is plain JavaScript with top-level `await` and `return`; editors may complain about the latter, the program does not.
 */

/** A value that JSON can hold. */
type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** What a script says of itself: a plain literal, the first statement, read and never run. */
interface WorkflowMeta {
  /** Its name, by which it is found and run: one line, at most 100 characters. */
  name: string;
  /** What it does, in a sentence. */
  description: string;
  /** When it is of use, for whoever chooses among several. */
  whenToUse?: string;
  /** Its phases, in order; titles are those of `phase()` and `opts.phase`, to the letter. */
  phases?: (WorkflowPhase | string)[];
  /** Further members are tolerated. */
  [name: string]: unknown;
}

/** A phase, for display. */
interface WorkflowPhase {
  /** Its title: one line. */
  title: string;
  /** More about it. */
  detail?: string;
  /** The model its author had in mind. For display: it chooses nothing. */
  model?: string;
}

/** A JSON schema with an object at its root. */
interface WorkflowSchema {
  /** `"object"`; plain JavaScript makes it a string. */
  type?: string;
  properties?: { [name: string]: object };
  required?: readonly string[];
  [keyword: string]: unknown;
}

/** The options of `agent`. One that is `undefined` is absent; an unknown one is ignored, with a line in the log. */
interface AgentOptions {
  /** What people see. No part of what a resumed run compares. */
  label?: string;
  /** The group of this agent, whatever `phase()` said last. No part of what a resumed run compares. */
  phase?: string;
  /** The agent's answer is a value that fits this. */
  schema?: WorkflowSchema;
  /** A model, or an alias such as `haiku`, `sonnet` or `opus`; the session's if absent. */
  model?: string;
  /** How hard it thinks; the session's if absent. */
  effort?: "low" | "medium" | "high" | "xhigh" | "max";
  /** A git worktree of its own; what it changes is kept on a branch. */
  isolation?: "worktree";
  /** A kind of agent: `general-purpose`, `Explore`, or one that the project or you defined. */
  agentType?: string;
  /** Ours: the only tools it may use. */
  tools?: readonly string[];
}

/**
 * Starts one agent with a clean context that sees nothing but the prompt.
 *
 * Resolves to its last message; with `schema` to a value that fits; to `null` if it died or a person skipped it. Rejects if its
 * answer never fitted the schema, if a cap is reached, if it ran past its deadline, or if the call is wrong.
 */
declare function agent(prompt: string, opts?: Omit<AgentOptions, "schema"> & { schema?: undefined }): Promise<string | null>;
declare function agent<T = any>(prompt: string, opts: AgentOptions & { schema: WorkflowSchema }): Promise<T | null>;

/**
 * Calls all functions at once and waits for all. Results stand in the order of the functions; one that throws is `null` there
 * and is logged. It takes functions, not promises: `parallel([() => agent("a")])`. At most 4,096.
 */
declare function parallel<T>(thunks: readonly (() => T | Promise<T>)[]): Promise<(Awaited<T> | null)[]>;

/**
 * Sends every item through the stages on its own; no item waits for another. A stage is called with what the stage before gave
 * (the item, in the first one), the item and its index. A stage that throws makes its item `null` and skips the rest; one that
 * returns `null` does not. At most 4,096 items.
 */
declare function pipeline<I, A>(items: readonly I[], first: Stage<I, I, A>): Promise<(A | null)[]>;
declare function pipeline<I, A, B>(items: readonly I[], first: Stage<I, I, A>, second: Stage<A, I, B>): Promise<(B | null)[]>;
declare function pipeline<I, A, B, C>(
  items: readonly I[],
  first: Stage<I, I, A>,
  second: Stage<A, I, B>,
  third: Stage<B, I, C>,
): Promise<(C | null)[]>;
declare function pipeline<I>(items: readonly I[], ...stages: Stage<any, I, any>[]): Promise<any[]>;

/** One stage of a pipeline; it may be async, and may return anything. */
type Stage<P, I, R> = (previous: P, item: I, index: number) => R | Promise<R>;

/** Agents that are started from now on belong to this phase. Inside `parallel` and `pipeline` use `opts.phase`. */
declare function phase(title: string): void;

/** A line for whoever watches, and for the record of the run. */
declare function log(message: string): void;

/** What the caller gave, as a value; `undefined` if nothing. A person may give a bare string. */
declare const args: any;

/** What may be spent, in tokens in and out, over the lead and all agents. */
declare const budget: {
  /** What was granted; `null` if there is no such cap. */
  readonly total: number | null;
  /** What is spent so far. */
  spent(): number;
  /** What is left, never below nought; `Infinity` without a total. At nought `agent()` rejects. */
  remaining(): number;
};

/**
 * Runs another workflow inline and gives its value. It shares the caps and the counters of this one. One level deep. Rejects for
 * an unknown name, a file that cannot be read, and a source that fails its check.
 */
declare function workflow(nameOrRef: string | { scriptPath: string }, args?: Json): Promise<any>;

/** A place that can be looked up. */
interface Citation {
  /** A file, relative to the working directory. */
  path: string;
  /** The first line that is meant, from 1. */
  first: number;
  /** The last one. */
  last: number;
  /** What stands there, to the letter. */
  quote: string;
}

/** Something that somebody may try to refute. */
interface Finding {
  /** One statement that can be shown to be wrong. */
  claim: string;
  /** What it rests on. */
  evidence: string;
  severity?: "high" | "medium" | "low" | "info";
  citations?: Citation[];
}

/** What became of a finding. */
interface Verified {
  /** `unverified`: nobody could look. A failure is never a refutation. */
  verdict: "confirmed" | "refuted" | "uncertain" | "unverified";
  /** What was seen, if it is `confirmed` or `refuted`. */
  evidence?: string;
  /** Why it is `uncertain` or `unverified`. */
  reason?: string;
  /** What was claimed. */
  claim: string;
  /** How many looked. */
  votes: number;
}

/**
 * Ours. Has the harness look the citations up, and agents that saw none of the reasoning try to refute the claim. Every voter
 * counts as an agent, and one is counted where no number is given. Rejects like `agent()` when a cap is reached.
 */
declare function verify(finding: Finding | string, opts?: { voters?: number; label?: string }): Promise<Verified>;

/**
 * Ours. Runs a command that only reads, on a throwaway copy of the directory, without an agent and without a network. Standard
 * output and standard error come together in `output`. Rejects if it cannot be run.
 */
declare function sh(command: string): Promise<{ ok: boolean; code: number; output: string; truncated: boolean }>;

/** Ours. Asks a person and waits: `convoke resume RUN --answer ID=TEXT`. Resolves to the text. */
declare function checkpoint(question: string): Promise<string>;

/** Calls a function later; the waiting is recorded, so a resumed run waits no second time. */
declare function setTimeout(callback: (...args: any[]) => void, ms?: number, ...args: any[]): number;
/** Forgets a timer. */
declare function clearTimeout(timer?: number): void;

/** `console.log` and its like are `log`. */
declare const console: Record<"log" | "info" | "warn" | "error" | "debug", (...values: unknown[]) => void>;

/** An address, taken apart. An invalid one throws a TypeError. */
declare class URL {
  constructor(url: string, base?: string | URL);
  readonly href: string;
  readonly origin: string;
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  readonly searchParams: {
    get(name: string): string | null;
    getAll(name: string): string[];
    has(name: string): boolean;
    forEach(callback: (value: string, name: string) => void): void;
    entries(): IterableIterator<[string, string]>;
    toString(): string;
  };
  toString(): string;
  toJSON(): string;
}
