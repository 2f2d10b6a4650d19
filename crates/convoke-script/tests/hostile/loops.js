// Programs that never wait and never end.
//# an endless loop
//# ends: ticks
while (true) {}
//# an endless for
//# ends: ticks
for (;;);
//# an endless loop over labels
//# ends: ticks
a: for (;;) { b: for (;;) continue a }
//# an endless loop that awaits nothing
//# ends: ticks
while (true) await null
//# an endless chain of then
//# ends: ticks or heap
const again = () => Promise.resolve().then(again)
await again()
//# a storm of microtasks
//# ends: ticks or heap
const burst = () => { Promise.resolve().then(burst); Promise.resolve().then(burst) }
burst()
await new Promise(() => {})
//# a storm of queueMicrotask
//# ends: ticks or heap or thrown
const burst = () => { queueMicrotask(burst) }
burst()
await new Promise(() => {})
//# a loop that catches everything
//# ends: ticks
while (true) { try { while (true) {} } catch {} }
//# a loop in finally
//# ends: ticks
try { while (true) {} } finally { while (true) {} }
//# a finally that returns
//# ends: ticks
const f = () => { try { while (true) {} } finally { return 1 } }
return f()
//# an async loop that catches everything
//# ends: ticks
for (;;) { try { await null; for (;;); } catch { await null } }
//# a then that catches the end and goes on
//# ends: ticks
const again = async () => { try { for (;;); } catch { return again() } finally { again() } }
await again()
//# an endless generator is spread
//# ends: ticks or heap
const g = function* () { let i = 0; while (true) yield i++ }
return [...g()].length
//# an endless generator is walked
//# ends: ticks
const g = function* () { while (true) yield 1 }
for (const x of g());
//# a generator that refuses to return
//# ends: returned "harmless"
const g = function* () { while (true) { try { yield 1 } finally { continue } } }
for (const x of g()) break
return 'harmless'
//# an endless async generator
//# ends: ticks
const g = async function* () { while (true) yield 1 }
for await (const x of g());
//# an endless getter
//# ends: ticks
return ({ get x() { while (true) {} } }).x
//# an endless proxy trap
//# ends: ticks
return new Proxy({}, { has() { for (;;); } }) && 'x' in new Proxy({}, { has() { for (;;); } })
//# an endless comparison
//# ends: ticks
return [3, 1, 2].sort(() => { for (;;); })
//# an endless conversion
//# ends: ticks
return `${{ toString() { for (;;); } }}`
//# an endless replacer
//# ends: ticks
return 'aaa'.replace(/a/g, () => { for (;;); })
//# Array.from of an endless array-like
//# ends: ticks or heap or thrown
return Array.from({ length: 2 ** 40 }, (_, i) => i).length
//# a regular expression that backtracks
//# ends: ticks or thrown or returned
return /^(a+)+$/.test('a'.repeat(40) + 'b')
//# a regular expression that backtracks, in a loop that catches
//# ends: ticks or thrown or returned
for (let i = 0; i < 50; i++) { try { /^(?:(a|a)*)*b$/.test('a'.repeat(40)) } catch {} }
return 'harmless'
//# an endless loop inside a thunk
//# ends: ticks
return await parallel([() => { while (true) {} }, () => agent('x')])
//# an endless loop inside a stage
//# ends: ticks
return await pipeline([1, 2], async x => { while (true) await null })
//# an endless loop after an agent
//# ends: ticks
await agent('x')
for (;;) await 0
//# an endless loop in a timer
//# ends: ticks
setTimeout(() => { while (true) {} }, 1)
await agent('x')
await new Promise(r => setTimeout(r, 10))
return 'late'
//# an endless loop in an executor
//# ends: ticks
await new Promise(() => { while (true) {} })
//# waiting for nothing
//# ends: deadlock
await new Promise(() => {})
//# a promise that waits for itself
//# ends: deadlock or thrown
const p = (async () => { await null; return await p })()
return await p
//# an endless wait for timers ends at the cap on calls
//# ends: pending
while (true) await new Promise(r => setTimeout(r, 1))
//# an endless row of agents ends at the cap
//# ends: thrown
let n = 0
while (true) { await agent(`number ${n++}`) }
//# an endless row of agents whose refusals are caught
//# ends: ticks
while (true) { try { await agent('x') } catch {} }
//# an endless row of verifications ends at the cap on agents
//# ends: thrown
while (true) await verify('it holds', { voters: 3 })
//# an endless row of commands ends at the cap on calls
//# ends: pending
while (true) await sh('ls')
//# the cap on calls is caught and the program goes on
//# ends: pending
while (true) { try { await checkpoint('more?') } catch {} }
//# timers that set the next timer
//# ends: pending
const again = () => setTimeout(again, 1)
again()
await new Promise(() => {})
//# the limit is caught in a thunk and the program goes on
//# ends: ticks
const r = await parallel([() => { while (true) {} }])
return r
//# the limit is caught in a getter of the result
//# ends: ticks
return { get a() { try { while (true) {} } catch { return 'escaped' } } }
//# many small loops between which nothing is awaited
//# ends: ticks
for (let i = 0; ; i++) { let s = 0; for (let j = 0; j < 1000; j++) s += j }
