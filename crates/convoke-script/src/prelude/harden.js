// Takes away what could make code from text, wait, or tell two runs apart, then freezes everything that is left and reachable.
// Runs last, before any line of the program. It leaves the global object open for new names and closes the old ones.
(() => {
  'use strict';
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf, freeze } = Object;
  const { ownKeys } = Reflect;

  for (const name of ['eval', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry', 'performance',
    'std', 'os', 'bjson', 'print', 'scriptArgs', 'navigator', 'gc', 'escape', 'unescape']) {
    delete globalThis[name];
  }
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  defineProperty(Error, 'stackTraceLimit', { get: () => 10, set() {}, configurable: true });

  // Functions keep their kind's constructor by name, for instanceof, but it constructs nothing.
  const noText = (name, prototype) => {
    const stub = {
      [name]: function () {
        throw new TypeError(`${name}() is not available in a workflow program: code cannot be made from text; write the function out`);
      },
    }[name];
    defineProperty(stub, 'prototype', { value: prototype, writable: false });
    defineProperty(prototype, 'constructor', { value: stub, writable: true, enumerable: false, configurable: true });
    return stub;
  };
  const kinds = [
    ['AsyncFunction', getPrototypeOf(async function () {})],
    ['GeneratorFunction', getPrototypeOf(function* () {})],
    ['AsyncGeneratorFunction', getPrototypeOf(async function* () {})],
  ];
  const stub = noText('Function', Function.prototype);
  defineProperty(globalThis, 'Function', { value: stub, writable: true, enumerable: false, configurable: true });
  for (const [name, prototype] of kinds) setPrototypeOf(noText(name, prototype), stub);

  // Assigning to an inherited name of a frozen prototype would throw; such names become accessors that define the name on the
  // object that was assigned to, as an ordinary assignment would have.
  const mend = (holder) => {
    for (const key of ownKeys(holder)) {
      const found = getOwnPropertyDescriptor(holder, key);
      if (!found.configurable || !found.writable) continue;
      const { value } = found;
      defineProperty(holder, key, {
        get() { return value; },
        set(next) {
          if (this === holder) throw new TypeError(`'${String(key)}' is read-only`);
          defineProperty(this, key, { value: next, writable: true, enumerable: true, configurable: true });
        },
        enumerable: found.enumerable,
        configurable: false,
      });
    }
  };
  const errors = [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError, globalThis.InternalError, globalThis.SuppressedError];
  for (const holder of [Object.prototype, stub.prototype, ...errors.filter(Boolean).map((kind) => kind.prototype)]) mend(holder);

  // Everything that can be reached by names and prototypes, and a few that only syntax reaches.
  const hidden = [
    ...kinds.map(([, prototype]) => prototype),
    [][Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](), ''[Symbol.iterator](), ''.matchAll(/./g),
    [].values().map((x) => x), Iterator.from({ next() {} }), (function* () {})(), (async function* () {})(), (async () => {})(),
    new Proxy({}, {}),
  ];
  const seen = new Set();
  const queue = [globalThis, ...hidden.map(getPrototypeOf), ...kinds.map(([, prototype]) => prototype)];
  while (queue.length > 0) {
    const next = queue.pop();
    if (next === null || (typeof next !== 'object' && typeof next !== 'function') || seen.has(next)) continue;
    seen.add(next);
    queue.push(getPrototypeOf(next));
    const names = ownKeys(next);
    // A function of the engine's own has a length and a name; there are a thousand of them, and nothing is behind those.
    if (typeof next === 'function' && names.length === 2) continue;
    for (const key of names) {
      const found = getOwnPropertyDescriptor(next, key);
      if ('value' in found) queue.push(found.value);
      else queue.push(found.get, found.set);
    }
  }
  seen.delete(globalThis);
  for (const each of seen) freeze(each);
  for (const key of ownKeys(globalThis)) {
    const found = getOwnPropertyDescriptor(globalThis, key);
    if (found.configurable) defineProperty(globalThis, key, 'value' in found ? { writable: false, configurable: false } : { configurable: false });
  }
})
