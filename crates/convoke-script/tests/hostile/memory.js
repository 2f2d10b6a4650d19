// Programs that want all the memory.
//# a string that doubles
//# ends: heap or thrown
let s = 'x'
while (true) s += s
//# a string that doubles, and the refusal is caught
//# ends: heap or ticks
let s = 'x'.repeat(1024)
const kept = []
while (true) { try { kept.push((s + kept.length).repeat(100)) } catch {} }
//# an array that grows
//# ends: heap or ticks
const a = []
while (true) a.push({ n: a.length })
//# an array that grows, and the refusal is caught
//# ends: heap or ticks
let a = []
while (true) { try { a.push(new Array(1000).fill(0)) } catch { } }
//# a huge array is filled
//# ends: heap or thrown
return new Array(2 ** 32 - 1).fill(0).length
//# a huge array is made
//# ends: heap or thrown
return Array.from({ length: 5e8 }).length
//# huge strings at once
//# ends: heap or thrown
return ['x'.repeat(2 ** 30 - 1), 'y'.padEnd(2 ** 29), 'z'.padStart(2 ** 29)].length
//# a huge buffer
//# ends: heap or thrown
return new ArrayBuffer(2 ** 40).byteLength
//# many middling buffers
//# ends: heap or thrown
const a = []
for (let i = 0; i < 1e4; i++) a.push(new Uint8Array(1 << 20))
return a.length
//# buffers that are resized
//# ends: heap or thrown or returned or ticks
const b = new ArrayBuffer(8, { maxByteLength: 2 ** 33 })
b.resize(2 ** 32)
return b.byteLength
//# a map that grows
//# ends: heap or ticks
const m = new Map()
for (let i = 0; ; i++) m.set({}, [i])
//# closures that keep each other
//# ends: heap or ticks
let f = () => 0
for (;;) { const g = f; f = () => g }
//# a BigInt that doubles
//# ends: heap or thrown or ticks
let n = 2n
while (true) n *= n
//# a shifted BigInt
//# ends: heap or thrown
return (1n << (1n << 40n)).toString().length
//# text of a huge object
//# ends: heap or thrown or ticks
const row = 'x'.repeat(1e5)
return JSON.stringify(Array.from({ length: 1e5 }, () => row)).length
//# symbols in the registry
//# ends: heap or ticks
for (let i = 0; ; i++) Symbol.for('s' + i)
//# property names, which crash the engine when memory runs out while an object grows
//# in: process
//# ends: any
const o = {}
for (let i = 0; ; i++) o['key' + i] = i
//# errors with their stacks
//# ends: heap or ticks
const a = []
for (;;) a.push(new Error('x'.repeat(100)))
//# a million pending promises
//# ends: heap or ticks or deadlock
await Promise.all(Array.from({ length: 1e6 }, () => new Promise(() => {})))
//# ten million pending promises, each with its reaction
//# ends: heap or ticks
const p = new Promise(() => {})
for (let i = 0; i < 1e7; i++) p.then(() => i)
await p
//# the memory runs out inside a thunk
//# ends: heap or ticks
return await parallel([() => { const a = []; for (;;) a.push(new Array(100).fill(1)) }, () => agent('x')])
//# the memory runs out in a catch
//# ends: heap or ticks
const kept = []
const eat = () => { try { for (;;) kept.push([kept.length]) } catch { return eat() } }
return eat()
//# a string is split into letters
//# ends: heap or thrown
return 'x'.repeat(3e7).split('').length
//# replaceAll that multiplies
//# in: process
//# ends: any
let s = 'x'.repeat(1000)
for (let i = 0; i < 10; i++) s = s.replaceAll('x', s)
return s.length
//# arguments by the million
//# ends: thrown or stack or heap or returned
return Math.max(...new Array(2e6).fill(1))
//# a regular expression as large as memory
//# ends: thrown or heap or stack
return new RegExp('(?:a|b)'.repeat(2e6)).test('a')
