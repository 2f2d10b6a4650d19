// Programs that go too deep.
//# a function that calls itself
//# ends: stack or thrown
const f = () => f() + 1
return f()
//# two functions that call each other
//# ends: stack or thrown
function a() { return b() + 1 }
function b() { return a() + 1 }
return a()
//# a recursion that is caught is a RangeError
//# ends: returned "RangeError" or stack
const f = () => f() + 1
try { f() } catch (e) { return e.name }
//# a recursion that is caught, again and again
//# ends: ticks or stack or returned or heap
const f = () => { try { return f() } catch { return f() } }
return f()
//# a recursion through finally
//# ends: ticks or stack or thrown
function f() { try { f() } finally { f() } }
f()
//# a recursion through getters
//# ends: stack or thrown
const o = { get x() { return this.x } }
return o.x
//# a recursion through toString
//# ends: stack or thrown
const o = { toString() { return `${this}` } }
return `${o}`
//# a recursion through toJSON
//# ends: stack or thrown
const o = { toJSON() { return JSON.stringify(o) } }
return JSON.stringify(o)
//# a recursion through a proxy
//# ends: stack or thrown
const p = new Proxy({}, { get: (t, k, r) => r[k] })
return p.x
//# a recursion through toPrimitive
//# ends: stack or thrown
const o = { [Symbol.toPrimitive]() { return o + 1 } }
return o + 1
//# a recursion through sort
//# ends: stack or thrown or ticks
const f = () => [2, 1].sort(f)[0]
return f()
//# a recursion through replace
//# ends: stack or thrown or ticks
const f = () => 'a'.replace(/a/, f)
return f()
//# a recursion through a constructor
//# ends: stack or thrown
class A { constructor() { this.a = new A() } }
return new A()
//# a hundred thousand proxies around each other
//# ends: stack or thrown or returned or ticks
let p = {}
for (let i = 0; i < 1e5; i++) p = new Proxy(p, {})
return p.x === undefined
//# a hundred thousand bound functions around each other
//# ends: stack or thrown or returned or heap
let f = () => 1
for (let i = 0; i < 1e5; i++) f = f.bind(null)
return f()
//# a prototype chain of a hundred thousand
//# ends: returned or ticks or thrown
let o = {}
for (let i = 0; i < 1e5; i++) o = Object.create(o)
return o.x === undefined
//# nested arrays become text
//# ends: stack or thrown or returned
let a = []
for (let i = 0; i < 1e5; i++) a = [a]
return `${a}`.length
//# nested arrays are flattened
//# ends: stack or thrown or returned
let a = []
for (let i = 0; i < 1e5; i++) a = [a]
return a.flat(Infinity).length
//# a regular expression of nested groups
//# ends: thrown or stack or heap
return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('')
//# an async function that awaits itself
//# ends: stack or thrown or heap or ticks
const f = async n => (await f(n + 1)) + 1
return await f(0)
//# nested delegation of generators
//# ends: stack or thrown or heap or ticks
function* g() { yield* g() }
return [...g()].length
//# parallel inside parallel, without end
//# ends: stack or thrown or heap or ticks or returned
const f = () => parallel([f])
return await f()
//# pipeline inside pipeline, without end
//# ends: stack or heap or ticks or returned
const f = async () => { await null; return pipeline([1], f) }
return await f()
//# a long chain of promises that resolve to each other
//# ends: returned 1 or ticks or heap
let p = Promise.resolve(1)
for (let i = 0; i < 1e5; i++) { const q = p; p = (async () => q)() }
return await p
//# a child that starts itself
//# ends: thrown
return await workflow('child_nested')
