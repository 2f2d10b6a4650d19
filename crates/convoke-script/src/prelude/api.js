// The names a workflow program calls. Everything that leaves goes through `host`, as text; everything that comes back comes
// through the object this returns. `current` is the scope that runs now: which slots of parallel and which items and stages of
// pipeline it stands in. It is set again whenever a function goes on after a wait, so it does not depend on what ends first.
((host, limits, portrayer) => {
  'use strict';
  const { stringify, parse } = JSON;
  const { defineProperty, getPrototypeOf, freeze, keys } = Object;
  const { apply } = Reflect;
  const { isArray } = Array;
  const { isInteger } = Number;
  const Promised = Promise;
  const then = Promise.prototype.then;
  const { withResolvers } = Promise;
  const OutOfMemory = globalThis.InternalError.prototype;

  let current = { path: '', count: 0 };
  let agents = 0;
  let spent = limits.spent;
  let outcome = null;
  let threwNull = false;
  const total = limits.total ?? null;
  const waiting = new Map();
  const remarked = new Set();
  const faults = new WeakMap();

  // ---- words

  const describe = (error) => {
    try {
      if (error instanceof Error) {
        const name = `${error.name}`, message = `${error.message}`;
        return (message === '' ? name : name === '' ? message : `${name}: ${message}`).slice(0, 2000).toWellFormed();
      }
      return show(error).slice(0, 2000).toWellFormed();
    } catch {
      return 'something that cannot be shown';
    }
  };
  const show = (value) => {
    if (typeof value === 'string') return value;
    if (value instanceof Error) return describe(value);
    if (typeof value === 'object' && value !== null) {
      try {
        const text = stringify(value);
        if (typeof text === 'string') return text;
      } catch {
        // It has a cycle or a BigInt, or throws when it is read.
      }
    }
    return String(value);
  };
  const say = (text) => host.log(text.toWellFormed());
  const portray = portrayer(limits.value_bytes, describe);

  // ---- limits that a program must not catch

  const spot = (error) => {
    let full = false;
    try {
      full = error === null ? isFull() : typeof error === 'object' && getPrototypeOf(error) === OutOfMemory && error.message === 'out of memory';
    } catch {
      full = false;
    }
    if (full) {
      host.full();
      throw error;
    }
  };
  // Without room for an error the engine throws null. A program that throws null itself has been seen to.
  const isFull = () => {
    if (!threwNull) return true;
    try {
      return new ArrayBuffer(65536).byteLength === 0;
    } catch {
      return true;
    }
  };
  const thrown = (value) => {
    if (value === null) threwNull = true;
    return value;
  };
  const executor = (f) => {
    // The constructor swallows an interrupt that comes while it runs. Where that has happened, the next one is waited for out here.
    if (host.stopped()) for (;;);
    return typeof f !== 'function' ? f : (resolve, reject) => f(resolve, (reason) => reject(thrown(reason)));
  };
  const nativeReject = Promise.reject;
  defineProperty(Promise, 'reject', {
    value: { reject(reason) { return apply(nativeReject, this, [thrown(reason)]); } }.reject,
    writable: true, enumerable: false, configurable: true,
  });

  // ---- scopes

  const entered = (scope, f, ...given) => {
    const before = current;
    current = scope;
    try {
      return f(...given);
    } finally {
      current = before;
    }
  };
  const inner = (scope, place) => ({ path: scope.path === '' ? place : `${scope.path}/${place}`, count: 0 });
  const capture = () => current;
  const resume = (scope, value) => {
    current = scope;
    return value;
  };
  const enter = (scope) => {
    current = scope;
  };
  const caught = (error, scope) => {
    if (scope !== undefined) current = scope;
    spot(error);
  };
  const carry = (f, scope, watch) =>
    typeof f !== 'function' ? f : (value) => {
      current = scope;
      if (watch) spot(value);
      return f(value);
    };
  defineProperty(Promise.prototype, 'then', {
    value: {
      then(onFulfilled, onRejected) {
        const scope = current;
        return apply(then, this, [carry(onFulfilled, scope, false), carry(onRejected, scope, true)]);
      },
    }.then,
    writable: true, enumerable: false, configurable: true,
  });
  const give = (name, value) => defineProperty(globalThis, name, { value, writable: true, enumerable: false, configurable: true });
  if (typeof queueMicrotask === 'function') {
    const native = queueMicrotask;
    give('queueMicrotask', { queueMicrotask: (f) => { const scope = current; native(() => entered(scope, f)); } }.queueMicrotask);
  }

  // ---- calls

  // A promise that rejects where an async function would; the body runs at once. It does not run inside the constructor, which
  // would take the interrupt that ends a program for an ordinary error.
  const promised = (body) => {
    const { promise, resolve, reject } = apply(withResolvers, Promised, []);
    try {
      body(resolve, reject);
    } catch (error) {
      reject(error);
    }
    return promise;
  };
  const fault = (kind, error) => {
    faults.set(error, kind);
    return error;
  };
  const call = (frame, want, phase, slot) => {
    const text = stringify(want);
    if (text.length > limits.value_bytes) {
      throw fault('value', new RangeError(`this ${want.want} call is ${text.length} characters long, and at most ${limits.value_bytes} may cross; hand over less, or a path to read`));
    }
    slot.stack = new Error().stack.toWellFormed();
    const number = host.call(text, current.path, phase?.toWellFormed(), frame.name, slot.stack);
    waiting.set(number, slot);
    return number;
  };
  const affordable = (what) => {
    if (total !== null && spent >= total) {
      throw new Error(`${what} was not started: the budget of ${total} tokens is spent (${spent})`);
    }
  };
  const admit = (what, count) => {
    if (agents + count <= limits.agents) return;
    const has = agents >= limits.agents ? 'has had them' : `has had ${agents} and would need ${count} more`;
    throw new Error(`${what} was not started: a run may have ${limits.agents} agents, and this one ${has}`);
  };
  const options = (what, value) => {
    if (value === undefined || value === null) return {};
    if (typeof value !== 'object' || isArray(value)) throw new TypeError(`the options of ${what}() must be an object`);
    return value;
  };
  const optional = (what, given, name, good, wanted) => {
    const value = given[name];
    if (value === undefined || value === null) return undefined;
    if (!good(value)) throw new TypeError(`option '${name}' of ${what}() must be ${wanted}`);
    return value;
  };
  const required = (what, name, value) => {
    if (typeof value !== 'string') throw new TypeError(`${what}() takes its ${name} as a string, and was given ${value === null ? 'null' : typeof value}`);
    if (value.trim() === '') throw new TypeError(`${what}() takes its ${name} as a string that is not empty`);
    return value;
  };
  const isText = (value) => typeof value === 'string';
  const isObject = (value) => typeof value === 'object' && value !== null && !isArray(value);
  const known = (what, given, names) => {
    for (const name of keys(given)) {
      if (names.includes(name) || remarked.size >= 100) continue;
      const key = `${what}.${name}`.slice(0, 200);
      if (remarked.has(key)) continue;
      remarked.add(key);
      say(`${what}() ignores the option '${name.slice(0, 200)}', which it does not know`);
    }
  };
  const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'];
  const AGENT_OPTIONS = ['label', 'phase', 'schema', 'model', 'effort', 'isolation', 'agentType', 'tools'];
  const isSchema = (schema) => isObject(schema) && (schema.type === 'object' || (schema.type === undefined && isObject(schema.properties)));

  const bindings = (frame, args) => {
    const agent = (prompt, opts) => promised((resolve, reject) => {
      required('agent', 'prompt', prompt);
      const given = options('agent', opts);
      const text = (name) => optional('agent', given, name, isText, 'a string');
      const label = text('label'), phase = text('phase'), model = text('model'), agentType = text('agentType');
      const schema = optional('agent', given, 'schema', isSchema, "a JSON schema whose root is an object: {type: 'object', properties: {…}}");
      const effort = optional('agent', given, 'effort', (value) => EFFORTS.includes(value), `one of ${EFFORTS.join(', ')}`);
      if (given.isolation === 'remote') throw new TypeError("option 'isolation' of agent(): 'remote' is not available here; use 'worktree' or leave it out");
      const isolation = optional('agent', given, 'isolation', (value) => value === 'worktree', "'worktree', or left out");
      const tools = optional('agent', given, 'tools', (value) => isArray(value) && value.every(isText), 'an array of strings');
      known('agent', given, AGENT_OPTIONS);
      affordable('this agent');
      admit('this agent', 1);
      call(frame, { want: 'agent', prompt, label, schema, model, effort, isolation, agent_type: agentType, tools }, phase ?? frame.phase, { resolve, reject });
      agents += 1;
    });
    const verify = (finding, opts) => promised((resolve, reject) => {
      if (isText(finding)) required('verify', 'finding', finding);
      else if (!isObject(finding) || !isText(finding.claim) || finding.claim.trim() === '') {
        throw new TypeError('verify() takes a finding: {claim, evidence}, or a claim as a string');
      }
      const given = options('verify', opts);
      const voters = optional('verify', given, 'voters', (value) => isInteger(value) && value > 0 && value <= 100, 'a whole number from 1 to 100');
      const label = optional('verify', given, 'label', isText, 'a string');
      known('verify', given, ['voters', 'label']);
      affordable('this verification');
      // Every voter is an agent; without a number it is one here, whatever the session's own is.
      const count = voters ?? 1;
      admit('this verification', count);
      call(frame, { want: 'verify', finding, voters, label }, frame.phase, { resolve, reject });
      agents += count;
    });
    const asked = (what, field) => (text) => promised((resolve, reject) => {
      required(what, field, text);
      call(frame, { want: what, [field]: text }, frame.phase, { resolve, reject });
    });
    const workflow = (ref, given) => promised((resolve, reject) => {
      if (frame.name !== undefined) throw new Error('workflow() is not available inside a child workflow: they nest one level deep');
      let name, script_path;
      if (isObject(ref)) script_path = required('workflow', 'scriptPath', ref.scriptPath);
      else name = required('workflow', 'name', ref);
      // Arguments go by value. What JSON drops, such as a function, is not there.
      const text = given === undefined ? undefined : stringify(given);
      const scope = current;
      call(frame, { want: 'workflow', name, script_path }, frame.phase, { resolve, reject, scope, args: text === undefined ? undefined : parse(text) });
    });
    const phase = (title) => {
      frame.phase = String(title).toWellFormed();
      host.phase(frame.phase, frame.name);
    };
    const log = (message) => say(show(message));
    const budget = freeze({
      total,
      spent: () => spent,
      remaining: () => (total === null ? Infinity : Math.max(0, total - spent)),
    });
    return {
      agent, parallel, pipeline, phase, log, args, budget, workflow, verify,
      sh: asked('sh', 'command'), checkpoint: asked('checkpoint', 'question'),
    };
  };

  // ---- parallel and pipeline

  const checkedList = (what, list, unit) => {
    if (!isArray(list)) throw new TypeError(`${what}() takes an array of ${unit}, and was given ${list === null ? 'null' : typeof list}`);
    const { length } = list;
    if (length > limits.items) throw new RangeError(`${what}() takes at most ${limits.items} ${unit}, and was given ${length}; split them`);
    const copy = [];
    for (let i = 0; i < length; i++) copy.push(list[i]);
    return copy;
  };
  const checkedFunction = (value, where, advice) => {
    if (typeof value !== 'function') throw new TypeError(`${where} is ${value === null ? 'null' : value instanceof Promised ? 'a promise' : `of type ${typeof value}`}, not a function; ${advice}`);
  };
  // Runs a function of the program in a scope of its own; what it comes to goes to one of the two.
  const attempt = (scope, f, given, done, failed) => {
    let promise;
    try {
      promise = Promised.resolve(entered(scope, f, ...given));
      apply(then, promise, [done, failed]);
    } catch (error) {
      failed(error);
    }
  };
  const collector = (count, resolve) => {
    const results = [];
    for (let i = 0; i < count; i++) results.push(null);
    let left = count;
    if (left === 0) resolve(results);
    return (index, value) => {
      results[index] = value;
      left -= 1;
      if (left === 0) resolve(results);
    };
  };

  const parallel = (thunks) => promised((resolve) => {
    const list = checkedList('parallel', thunks, 'functions');
    list.forEach((thunk, i) => checkedFunction(thunk, `parallel: item ${i}`, 'wrap it: () => agent(…)'));
    const scope = current;
    const ordinal = ++scope.count;
    const settle = collector(list.length, resolve);
    list.forEach((thunk, i) => {
      attempt(inner(scope, `${ordinal}[${i}]`), thunk, [], (value) => settle(i, value), (error) => {
        settle(i, null);
        spot(error);
        say(`parallel[${i}] failed: ${describe(error)}`);
      });
    });
  });
  const pipeline = (items, ...stages) => promised((resolve) => {
    const list = checkedList('pipeline', items, 'items');
    stages.forEach((stage, i) => checkedFunction(stage, `pipeline: stage ${i + 1}`, 'pass (prev, item, index) => …'));
    const scope = current;
    const ordinal = ++scope.count;
    const settle = collector(list.length, resolve);
    const advance = (index, stage, prev) => {
      if (stage === stages.length) return settle(index, prev);
      attempt(inner(scope, `${ordinal}[${index}].${stage}`), stages[stage], [prev, list[index], index], (value) => advance(index, stage + 1, value), (error) => {
        settle(index, null);
        spot(error);
        say(`pipeline[${index}] failed in stage ${stage + 1}: ${describe(error)}`);
      });
    };
    list.forEach((item, index) => advance(index, 0, item));
  });

  // ---- timers and console

  const main = { name: undefined, phase: undefined };
  give('setTimeout', {
    setTimeout(f, delay = 0, ...given) {
      checkedFunction(f, 'setTimeout: its first argument', 'pass () => …');
      const ms = Math.trunc(Math.min(Math.max(Number(delay) || 0, 0), 2147483647));
      return call(main, { want: 'timer', ms }, undefined, { timer: f, given, scope: current });
    },
  }.setTimeout);
  give('clearTimeout', {
    clearTimeout(id) {
      if (waiting.get(id)?.timer === undefined) return;
      waiting.delete(id);
      host.clear(id);
    },
  }.clearTimeout);
  const line = (...parts) => say(parts.map(show).join(' '));
  give('console', { log: line, info: line, warn: line, error: line, debug: line });

  // ---- what the interpreter calls

  const run = (factory, frame, args, scope) => {
    const bound = bindings(frame, args);
    const body = factory(capture, resume, enter, caught, thrown, executor, ...limits.names.map((name) => bound[name]));
    return entered(scope, body);
  };
  let args;
  return {
    // Before the freezing: the names on the global object, for those who reach for them there.
    open() {
      const bound = bindings(main, undefined);
      for (const name of limits.names) if (name !== 'args') give(name, bound[name]);
    },
    // After it: the arguments, which are the program's own to change.
    hand(given) {
      args = given;
      defineProperty(globalThis, 'args', { value: args, writable: false, enumerable: false, configurable: false });
    },
    start(factory) {
      apply(then, run(factory, main, args, current), [
        (value) => { outcome = { value }; },
        (error) => { outcome = { error }; },
      ]);
    },
    settle(number, ok, value) {
      const slot = waiting.get(number);
      waiting.delete(number);
      if (slot.timer !== undefined) {
        try {
          entered(slot.scope, slot.timer, ...slot.given);
        } catch (error) {
          spot(error);
          say(`a timer failed: ${describe(error)}`);
        }
      } else if (ok) slot.resolve(value);
      else {
        // It shows where the call was made: the answer itself comes from nowhere in the program.
        const error = new Error(value);
        defineProperty(error, 'stack', { value: slot.stack, writable: true, enumerable: false, configurable: true });
        slot.reject(error);
      }
    },
    child(number, name, factory) {
      const slot = waiting.get(number);
      waiting.delete(number);
      try {
        slot.resolve(run(factory, { name, phase: undefined }, slot.args, slot.scope));
      } catch (error) {
        slot.reject(error);
      }
    },
    spend(now) {
      spent = now;
    },
    // How the body ended: undefined if it has not; a text that says how otherwise.
    report() {
      if (outcome === null) return undefined;
      if ('error' in outcome) {
        const { error } = outcome;
        let stack;
        try {
          stack = error instanceof Error ? `${error.stack}`.slice(0, 20000).toWellFormed() : undefined;
        } catch {
          stack = undefined;
        }
        const kind = error === null ? (isFull() ? 'heap' : undefined) : typeof error === 'object' ? faults.get(error) : undefined;
        return stringify({ threw: describe(error), stack, kind });
      }
      return portray(outcome.value) ?? stringify({ threw: `the result is larger than ${limits.value_bytes} characters; return less, or write it to a file through an agent`, kind: 'value' });
    },
    describe,
  };
})
