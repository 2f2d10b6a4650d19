// Attempts to change what everybody uses. Each must throw or change nothing that the host reads.
//# everything that can be reached is frozen
//# ends: returned []
// The arguments are the program's own.
const seen = new Set([args])
const open = []
const walk = (value, path) => {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return
  seen.add(value)
  if (value !== globalThis && !Object.isFrozen(value)) {
    // Accessors of intrinsics are fine as long as nothing can be redefined.
    const loose = Reflect.ownKeys(value).filter(k => Object.getOwnPropertyDescriptor(value, k).configurable || Object.getOwnPropertyDescriptor(value, k).writable)
    if (loose.length || Object.isExtensible(value)) open.push(path)
  }
  for (const key of Reflect.ownKeys(value)) {
    const d = Object.getOwnPropertyDescriptor(value, key)
    for (const part of ['value', 'get', 'set']) walk(d[part], `${path}.${String(key)}`)
  }
  walk(Object.getPrototypeOf(value), `${path}.__proto__`)
}
for (const name of Reflect.ownKeys(globalThis)) if (name !== 'args') walk(globalThis[name], String(name))
for (const value of [async () => {}, function* () {}, async function* () {}, [][Symbol.iterator](), new Map().entries(), new Set().values(), 'x'.matchAll(/x/g), ''[Symbol.iterator]()]) walk(Object.getPrototypeOf(value), 'hidden')
return open.slice(0, 20)
//# a property on Object.prototype
//# ends: returned "harmless"
try { Object.prototype.label = 'polluted' } catch {}
await agent('hello')
return ({}).label === undefined ? 'harmless' : 'polluted'
//# a getter for every option on Object.prototype
//# ends: returned "harmless"
let hits = 0
for (const key of ['label', 'phase', 'schema', 'model', 'effort', 'isolation', 'agentType', 'tools']) {
  try { Object.defineProperty(Object.prototype, key, { get() { hits++; return 'evil' }, configurable: true }) } catch {}
}
await agent('hello', {})
return hits === 0 ? 'harmless' : 'polluted'
//# toJSON on Object.prototype
//# ends: returned {"a":[1]}
try { Object.prototype.toJSON = () => 'evil' } catch {}
return { a: [1] }
//# then on Object.prototype
//# ends: returned {"b":2}
try { Object.prototype.then = function (r) { r('evil') } } catch {}
return { b: 2 }
//# the prototype of Object.prototype
//# ends: returned "harmless"
try { Object.setPrototypeOf(Object.prototype, { label: 'evil' }) } catch {}
try { Object.prototype.__proto__ = { label: 'evil' } } catch {}
return ({}).label === undefined ? 'harmless' : 'polluted'
//# Promise.prototype.then
//# ends: returned "harmless"
try { Promise.prototype.then = () => { throw 1 } } catch {}
try { Promise.prototype.constructor = function () {} } catch {}
const [a] = await parallel([() => agent('hello')])
return typeof a === 'string' ? 'harmless' : 'polluted'
//# the statics of Promise
//# ends: returned "harmless"
for (const k of ['all', 'allSettled', 'resolve', 'reject', 'race']) { try { Promise[k] = () => 'evil' } catch {} }
const [a] = await pipeline(['x'], x => agent(x))
return typeof a === 'string' ? 'harmless' : 'polluted'
//# JSON.stringify and JSON.parse
//# ends: returned {"c":3}
try { JSON.stringify = () => '"evil"' } catch {}
try { JSON.parse = () => 'evil' } catch {}
await agent('hello', { schema: { type: 'object', properties: {} } })
return { c: 3 }
//# the methods of Array.prototype
//# ends: returned ["ok","ok"]
for (const k of Object.getOwnPropertyNames(Array.prototype)) { try { Array.prototype[k] = () => { throw new Error('evil') } } catch {} }
return await parallel([() => 'ok', () => 'ok'])
//# an index on Array.prototype
//# ends: returned [1,2]
try { Object.defineProperty(Array.prototype, '0', { set() { throw 1 }, get() { return 'evil' }, configurable: true }) } catch {}
return await pipeline([1, 2], x => x)
//# the iterator of arrays
//# ends: returned [1,2]
try { Array.prototype[Symbol.iterator] = function* () { yield 'evil' } } catch {}
try { Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: false, value: 'evil' }) } catch {}
return await parallel([() => 1, () => 2])
//# call and apply of functions
//# ends: returned ["x"]
try { Function.prototype.call = () => 'evil' } catch {}
try { Function.prototype.apply = () => 'evil' } catch {}
try { Object.defineProperty(Object.getPrototypeOf(() => {}), 'call', { value: () => 'evil' }) } catch {}
return await pipeline(['x'], x => x)
//# the methods of String.prototype
//# ends: returned "harmless"
for (const k of Object.getOwnPropertyNames(String.prototype)) { try { String.prototype[k] = () => 'evil' } catch {} }
log('hello')
phase('one')
return await agent('hello', { label: 'x' }).then(t => (typeof t === 'string' ? 'harmless' : 'polluted'))
//# Map, Set, WeakMap, RegExp, Error, Number, Symbol
//# ends: returned "harmless"
for (const c of [Map, Set, WeakMap, RegExp, Error, TypeError, Number, Symbol, Date, Boolean]) {
  for (const k of Reflect.ownKeys(c.prototype)) { try { Object.defineProperty(c.prototype, k, { get() { throw new Error('evil') } }) } catch {} }
  for (const k of Reflect.ownKeys(c)) { try { Object.defineProperty(c, k, { get() { throw new Error('evil') } }) } catch {} }
}
const r = await parallel([() => { throw new Error('mine') }, () => agent('hello')])
return r[0] === null && typeof r[1] === 'string' ? 'harmless' : 'polluted'
//# the statics of Object and Reflect
//# ends: returned {"d":4}
for (const c of [Object, Reflect, Math, Array]) for (const k of Reflect.ownKeys(c)) { try { c[k] = () => { throw 1 } } catch {} }
await agent('hello', { label: 'x' })
return { d: 4 }
//# a global of the interpreter is replaced
//# ends: returned "harmless"
for (const k of ['agent', 'parallel', 'pipeline', 'Promise', 'Object', 'JSON', 'Array', 'Error', 'TypeError', 'undefined', 'URL']) { try { globalThis[k] = () => 'evil' } catch {} try { delete globalThis[k] } catch {} }
const r = await parallel([() => 1])
return r[0] === 1 ? 'harmless' : 'only fooled itself'
//# species and toPrimitive are poisoned
//# ends: returned [1]
class Bad extends Array { static get [Symbol.species]() { throw new Error('evil') } }
try { Object.defineProperty(Promise, Symbol.species, { get() { throw 1 } }) } catch {}
return await parallel(Bad.from([() => 1]))
//# an array whose iterator and length lie
//# ends: returned or thrown or ticks or heap
const a = [() => 1]
a[Symbol.iterator] = function* () { while (true) yield () => 1 }
a.map = () => { throw new Error('evil') }
return await parallel(a)
//# a proxy around an array of thunks
//# ends: returned or thrown
let n = 0
const a = new Proxy([() => 1, () => 2], { get(t, k) { n++; return k === 'length' ? 2 + (n % 3) : Reflect.get(t, k) } })
return await parallel(a)
//# Error.prepareStackTrace, captureStackTrace and stackTraceLimit
//# ends: returned or thrown
try { Error.prepareStackTrace = () => { while (true) {} } } catch {}
try { Error.stackTraceLimit = 1e9 } catch {}
try { Error.captureStackTrace({}) } catch {}
throw new Error('mine')
//# __proto__ in a literal, in JSON and by assignment
//# ends: returned "harmless"
const a = JSON.parse('{"__proto__":{"label":"evil"}}')
const b = { ['__proto__']: { label: 'evil' } }
Object.assign({}, a, b)
try { ({}).__proto__.label = 'evil' } catch {}
await agent('hello', a)
return ({}).label === undefined ? 'harmless' : 'polluted'
