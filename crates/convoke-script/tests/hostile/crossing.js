// Values that do harm when somebody reads them.
//# a getter that throws, in the result
//# ends: returned or thrown
return { get a() { throw new Error('evil') }, b: 1 }
//# a getter that never ends, in the result
//# ends: ticks
return { get a() { while (true) {} } }
//# a getter that gives something else each time
//# ends: returned or value
let n = 0
return { get a() { return n++ ? 'x'.repeat(1e6) : { get b() { return n++ } } } }
//# toJSON that never ends
//# ends: ticks
return { toJSON() { for (;;) {} } }
//# toJSON that throws
//# ends: returned or thrown
return { a: { toJSON() { throw new Error('evil') } } }
//# toJSON that makes another one
//# ends: returned or value or stack or ticks or heap
const make = () => ({ toJSON() { return { again: make() } } })
return make()
//# a proxy with a million keys
//# ends: returned or value or heap or ticks or thrown
return new Proxy({}, { ownKeys: () => Array.from({ length: 1e6 }, (_, i) => 'k' + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }), get: () => 1 })
//# a proxy that is revoked
//# ends: returned or thrown
const { proxy, revoke } = Proxy.revocable({}, {})
revoke()
return [proxy]
//# a proxy of an array with an endless length
//# ends: value or heap or ticks or thrown or returned
return new Proxy([], { get: (t, k) => (k === 'length' ? 2 ** 40 : 1) })
//# a thenable as result
//# ends: returned 7
return { then(resolve) { resolve(7) } }
//# a thenable that never answers
//# ends: deadlock
return { then() {} }
//# a thenable that answers with itself
//# ends: ticks or stack or heap or thrown
const t = { then(resolve) { resolve(t) } }
return t
//# a thenable that answers twice
//# ends: returned 1
return { then(resolve, reject) { resolve(1); resolve(2); reject(new Error('evil')) } }
//# functions, symbols, BigInt, NaN, -0 and undefined in the result
//# ends: returned
return { f() {}, s: Symbol('x'), b: 10n ** 30n, n: NaN, i: -Infinity, z: -0, u: undefined, a: [undefined, () => {}, Symbol.iterator], d: new Date(0), r: /x/g, e: new Error('x') }
//# a cycle in the result
//# ends: returned
const a = { list: [] }
a.list.push(a, [a])
return a
//# a function as the whole result
//# ends: returned
return () => {}
//# a BigInt as the whole result
//# ends: returned
return 2n ** 64n
//# a symbol as the whole result
//# ends: returned
return Symbol('x')
//# maps, sets, buffers and promises in the result
//# ends: returned
return { m: new Map([[1, 2]]), s: new Set([1]), w: new WeakMap(), b: new ArrayBuffer(8), t: new Uint8Array(3), p: Promise.resolve(1), g: (function* () {})(), x: new Proxy({}, {}) }
//# a result that is a hundred thousand levels deep
//# ends: value or returned
let deep = 1
for (let i = 0; i < 1e5; i++) deep = [deep]
return deep
//# a result of deep objects
//# ends: value or returned
let deep = {}
for (let i = 0; i < 1e5; i++) deep = { a: deep }
return deep
//# a result with one huge string
//# ends: value or heap
return 'x'.repeat(20 * 1024 * 1024)
//# a result in which one part stands many times
//# ends: value or heap or ticks
let part = ['x'.repeat(100)]
for (let i = 0; i < 40; i++) part = [part, part]
return part
//# an array that is mostly holes
//# ends: value or heap or ticks or returned
const a = []
a[3e6] = 1
return a
//# lone surrogates in the result, the prompt, the label and a log line
//# ends: returned
log('a\ud800b')
phase('\udfff')
const got = await agent('x\ud800', { label: '\udc00', phase: '\ud800' })
return { got, lone: '\ud800', key: { '\udfff': 1 }, reversed: '\udc00\ud800' }
//# null bytes in the prompt and the result
//# ends: returned "a\u0000b"
await agent('a\0b', { label: '\0' })
return 'a\0b'
//# a prompt that is an object with toString
//# ends: thrown
return await agent({ toString() { while (true) {} } })
//# a prompt that is a String object
//# ends: thrown or returned
return await agent(new String('x'))
//# an option that is a getter, read once
//# ends: returned 1
let n = 0
await agent('x', { get label() { n++; return 'l' + n } })
return n
//# an option whose getter never ends
//# ends: ticks
return await agent('x', { get schema() { while (true) {} } })
//# options that are a proxy
//# ends: returned or thrown
return await agent('x', new Proxy({}, { get() { throw new Error('evil') }, ownKeys() { return ['label', 'schema'] } }))
//# a schema with a cycle
//# ends: thrown
const s = { type: 'object', properties: {} }
s.properties.self = s
return await agent('x', { schema: s })
//# a schema with toJSON
//# ends: returned or thrown
return await agent('x', { schema: { type: 'object', toJSON() { return { type: 'object', properties: {} } } } })
//# a schema that is a hundred thousand levels deep
//# ends: thrown or value or stack
let s = { type: 'object' }
for (let i = 0; i < 1e5; i++) s = { type: 'object', properties: { s } }
return await agent('x', { schema: s })
//# a prompt of thirty million characters
//# ends: value or thrown or heap
return await agent('x'.repeat(30e6))
//# a label of thirty million characters
//# ends: value or thrown or heap
return await agent('x', { label: 'x'.repeat(30e6) })
//# a finding that is a hundred thousand levels deep
//# ends: thrown or value or stack
let f = {}
for (let i = 0; i < 1e5; i++) f = { f }
return await verify({ claim: 'x', evidence: 'y', f })
//# a finding with getters
//# ends: returned or thrown
return await verify({ get claim() { return 'x' }, evidence: { toJSON: () => 'y' } })
//# child arguments that cannot be copied
//# ends: thrown or returned
return await workflow('child_brief', { f: () => 1, s: Symbol('x'), b: 1n })
//# an error whose message is a getter that never ends
//# ends: ticks or thrown
const e = new Error('x')
Object.defineProperty(e, 'message', { get() { while (true) {} } })
throw e
//# an error with a message of ten million characters
//# ends: thrown or value or heap
throw new Error('x'.repeat(1e7))
//# a stack that lies
//# ends: thrown
const e = new Error('x')
e.stack = 'at f (attack:99999999999999999999:99999999999999999999)\n    at -1:-1\n:::'
throw e
//# a stack that is no string
//# ends: thrown or ticks
const e = new Error('x')
try { e.stack = { toString() { while (true) {} } } } catch {}
throw e
//# null is thrown
//# ends: thrown
throw null
//# undefined is thrown
//# ends: thrown
throw undefined
//# a symbol is thrown
//# ends: thrown
throw Symbol('x')
//# a proxy is thrown
//# ends: thrown
throw new Proxy({}, { get() { throw new Proxy({}, {}) }, getPrototypeOf() { throw 1 } })
//# an object whose toString never ends is thrown
//# ends: thrown or ticks
throw { toString() { while (true) {} }, get name() { while (true) {} } }
//# deep JSON is parsed
//# ends: thrown or stack or heap or returned
return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6)).length
//# deep JSON is written
//# ends: thrown or stack or heap or ticks
let deep = []
for (let i = 0; i < 1e6; i++) deep = [deep]
return JSON.stringify(deep).length
