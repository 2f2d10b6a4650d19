// Loops in the engine's own code, which it may be unable to interrupt. They are run in a process that can be killed.
//# join of an array that is all holes
//# in: process
//# ends: any
const a = []
a.length = 2 ** 32 - 1
return a.join('').length
//# reverse of a huge array-like
//# in: process
//# ends: any
return Array.prototype.reverse.call({ length: 2 ** 53 - 1 })
//# indexOf in a huge array-like
//# in: process
//# ends: any
return Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)
//# includes in a huge array-like
//# in: process
//# ends: any
return Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)
//# lastIndexOf in a huge array
//# in: process
//# ends: any
return new Array(2 ** 32 - 1).lastIndexOf(1)
//# a search of a long text in a longer one
//# in: process
//# ends: any
const n = 3e6
return ('a'.repeat(n) + 'b').repeat(3).indexOf('a'.repeat(n) + 'c')
//# a long sort
//# in: process
//# ends: any
return Array.from({ length: 3e6 }, (_, i) => String((i * 7919) % 3e6)).sort().length
//# sort of a huge array-like
//# in: process
//# ends: any
return Array.prototype.sort.call({ length: 2 ** 53 - 1 })
//# unshift on a huge array-like
//# in: process
//# ends: any
return Array.prototype.unshift.call({ length: 2 ** 53 - 10 }, 1)
//# splice on a huge array-like
//# in: process
//# ends: any
return Array.prototype.splice.call({ length: 2 ** 53 - 10 }, 0, 1)
//# copyWithin on a huge array-like
//# in: process
//# ends: any
return Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 1, 0)
//# fill on a huge array-like
//# in: process
//# ends: any
return Array.prototype.fill.call({ length: 2 ** 53 - 1 }, 0)
//# text of an array that is all holes
//# in: process
//# ends: any
return JSON.stringify(new Array(2 ** 32 - 1)).length
//# an array that is all holes is the result
//# in: process
//# ends: any
return new Array(2 ** 32 - 1)
//# a huge power
//# in: process
//# ends: any
return (3n ** 20000000n).toString().length
//# the text of a huge BigInt
//# in: process
//# ends: any
return (1n << 8000000n).toString().length
//# a huge division
//# in: process
//# ends: any
let a = 1n << 6000000n
let b = (1n << 3000000n) + 1n
for (let i = 0; i < 1000; i++) a = (a * a) / b
return a > b
//# the normal form of a long text
//# in: process
//# ends: any
return ('\u0344'.repeat(2e6) + 'a').normalize('NFD').length
//# flat of wide arrays
//# in: process
//# ends: any
let a = [1]
for (let i = 0; i < 30; i++) a = [a, a]
return a.flat(Infinity).length
//# concat of huge spreadables
//# in: process
//# ends: any
return [].concat({ length: 2 ** 32, [Symbol.isConcatSpreadable]: true }).length
//# a typed array is sorted
//# in: process
//# ends: any
const t = new Float64Array(4e6)
for (let i = 0; i < t.length; i++) t[i] = (i * 7919) % t.length
return t.sort()[0]
//# a regular expression that backtracks in native code
//# in: process
//# ends: any
return /(x+x+)+y/.test('x'.repeat(64)) || /(?:.*)*z/s.test('x'.repeat(5000)) || /(?=(a*)*b)c/.test('a'.repeat(64))
//# a split by a regular expression that backtracks
//# in: process
//# ends: any
return 'a'.repeat(50000).split(/(?:a+)+b/).length
//# toLocaleString of a huge array-like
//# in: process
//# ends: any
return Array.prototype.toLocaleString.call({ length: 2 ** 53 - 1 })
//# lastIndexOf of text
//# in: process
//# ends: any
return 'a'.repeat(2e6).lastIndexOf('a'.repeat(1e6) + 'b')
//# a native loop inside a thunk, beside an agent
//# in: process
//# ends: any
return await parallel([() => agent('x'), () => Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)])
//# a native loop that catches its end
//# in: process
//# ends: any
for (;;) { try { new Array(2 ** 32 - 1).indexOf(1) } catch {} }
