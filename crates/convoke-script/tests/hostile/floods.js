// Programs that ask for too much or say too much.
//# a million agents
//# ends: returned or ticks or heap or pending
const all = []
for (let i = 0; i < 1e6; i++) all.push(agent(`n ${i}`).catch(() => null))
return (await Promise.all(all)).filter(Boolean).length
//# a million agents in one parallel
//# ends: thrown or heap
return await parallel(Array.from({ length: 1e6 }, (_, i) => () => agent(`n ${i}`)))
//# one item more than parallel takes
//# ends: thrown
return await parallel(Array.from({ length: 4097 }, () => () => 1))
//# one item more than pipeline takes
//# ends: thrown
return await pipeline(Array.from({ length: 4097 }, (_, i) => i), x => x)
//# a million stages
//# ends: returned or thrown or ticks or heap or stack
return (await pipeline([1], ...Array.from({ length: 1e6 }, () => x => x))).length
//# parallel of parallel of parallel, each at its limit
//# ends: ticks or heap or pending or returned
const four = f => Array.from({ length: 4096 }, () => f)
return (await parallel(four(() => parallel(four(() => parallel(four(() => 1))))))).length
//# twenty thousand timers
//# ends: pending
for (let i = 0; i < 20000; i++) setTimeout(() => {}, i)
await agent('x')
return 'too many'
//# twenty thousand commands
//# ends: pending or thrown
await Promise.all(Array.from({ length: 20000 }, (_, i) => sh(`echo ${i}`)))
return 'too many'
//# twenty thousand checkpoints that nobody awaits
//# ends: pending or thrown
for (let i = 0; i < 20000; i++) checkpoint(`q ${i}`).catch(() => {})
await agent('x')
return 'too many'
//# twenty thousand verifications
//# ends: thrown or ticks
await Promise.all(Array.from({ length: 20000 }, (_, i) => verify({ claim: `c ${i}`, evidence: 'e' })))
return 'too many'
//# twenty thousand children
//# ends: pending or thrown
await Promise.all(Array.from({ length: 20000 }, () => workflow('child_brief')))
return 'too many'
//# timers that are set and cleared without end
//# ends: ticks or heap or pending
for (;;) clearTimeout(setTimeout(() => {}, 1))
//# a timer with every kind of delay
//# ends: returned 8
let n = 0
for (const ms of [0, -1, NaN, Infinity, 2 ** 60, '5', {}, undefined]) setTimeout(() => { n++ }, ms)
while (n < 8) await new Promise(r => setTimeout(r, 1))
return n
//# clearing timers that never were
//# ends: returned "harmless"
for (const id of [0, -1, 99, NaN, 'x', {}, null, undefined, 1n, 2 ** 53]) { try { clearTimeout(id) } catch {} }
return 'harmless'
//# a log line of ten million characters
//# ends: returned
log('x'.repeat(1e7))
return 'said'
//# a million log lines
//# ends: logs
for (let i = 0; i < 1e6; i++) log(`line ${i}`)
return 'said'
//# a million lines of console.log
//# ends: logs
for (let i = 0; i < 1e6; i++) console.log('line', i)
return 'said'
//# a million phases
//# ends: logs or ticks or heap or value or pending or thrown
for (let i = 0; i < 1e6; i++) phase(`phase ${i}`)
return 'said'
//# log lines that are caught
//# ends: logs or ticks
for (;;) { try { log('x') } catch {} }
//# log lines full of control characters
//# ends: returned "said"
log('\u001b[2J\u001b]0;title\u0007\r\n\u0000\u0008\u009b31m\u202e\u2028bell')
console.error('\u001b[31mred\u001b[0m')
phase('\u001b[2Jphase\n\r')
return 'said'
//# ten thousand failures in parallel, each with a long message
//# ends: returned or logs
for (let i = 0; i < 5; i++) await parallel(Array.from({ length: 2000 }, () => () => { throw new Error('x'.repeat(1000)) }))
return 'done'
//# a hundred thousand unknown options
//# ends: returned or logs or thrown or value
const o = {}
for (let i = 0; i < 1e5; i++) o['option' + i] = i
return await agent('x', o)
//# a phase title of ten million characters
//# ends: returned or value or heap or thrown
phase('x'.repeat(1e7))
return (await agent('x')) !== null
//# log of everything but text
//# ends: returned "said"
for (const x of [null, undefined, 1, 1n, Symbol('x'), {}, [], () => {}, { toString() { throw 1 } }, new Proxy({}, {})]) { try { log(x) } catch {} try { console.log(x) } catch {} }
return 'said'
//# rejections that nobody hears
//# ends: returned or logs
for (let i = 0; i < 50000; i++) Promise.reject(new Error('x'.repeat(200)))
return 'done'
//# agents that nobody awaits
//# ends: returned "gone"
for (let i = 0; i < 20; i++) agent(`left behind ${i}`)
return 'gone'
//# calls made after the end
//# ends: returned "gone"
agent('one').then(() => agent('two')).then(() => { while (true) {} })
return 'gone'
