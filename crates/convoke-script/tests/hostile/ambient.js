// Programs that look for a world outside: a clock, chance, a machine.
//# the names that other hosts have
//# ends: returned []
const names = ['require', 'process', 'module', 'exports', 'Buffer', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Deno', 'Bun', 'std', 'os', 'bjson', 'scriptArgs', 'print', 'navigator', 'location', 'document', 'window', 'self', 'global', '__dirname', '__filename', 'setInterval', 'setImmediate', 'performance', 'WebAssembly', 'WeakRef', 'FinalizationRegistry', 'SharedArrayBuffer', 'crypto', 'gc', 'read', 'load', 'Worker', 'importScripts', '__loadScript', 'InternalError2', 'eval', 'ShadowRealm', 'DOMException', 'Temporal']
const there = names.filter(n => { try { return globalThis[n] !== undefined } catch { return false } })
// What exists must refuse to work.
return there.filter(n => { try { globalThis[n]('1'); return true } catch {} try { new globalThis[n]('1'); return true } catch { return false } })
//# Date.now by every other way
//# ends: returned []
const open = []
const attempt = (name, f) => { try { const v = f(); if (!Number.isNaN(+v)) open.push(name) } catch {} }
const D = globalThis['Da' + 'te']
const { now } = D
attempt('destructured', () => now())
attempt('computed', () => D['n' + 'ow']())
attempt('call', () => D.now.call(D))
attempt('reflect', () => Reflect.apply(D.now, D, []))
attempt('new', () => Reflect.construct(D, []))
attempt('bare', () => D.parse(D()))
attempt('bare, called', () => D.parse(D.call(null)))
attempt('subclass', () => new (class extends D { constructor() { super() } })())
attempt('its own constructor', () => new (new D(0).constructor)())
attempt('the prototype', () => new (D.prototype.constructor)())
attempt('new target', () => Reflect.construct(D, [], Object))
attempt('spread', () => new D(...[]))
return open
//# Math.random by every other way
//# ends: returned []
const open = []
const attempt = (name, f) => { try { const v = f(); if (typeof v === 'number') open.push(name) } catch {} }
const { random } = Math
attempt('destructured', () => random())
attempt('computed', () => Math['ran' + 'dom']())
attempt('reflect', () => Reflect.apply(Math.random, Math, []))
attempt('global', () => globalThis['Ma' + 'th'].random())
return open
//# Date.now by name
//# ends: unsound
return Date.now()
//# Math.random by name
//# ends: unsound
return Math.random()
//# new Date without arguments
//# ends: unsound
return new Date()
//# Date without new
//# ends: unsound
return Date()
//# the time zone of the machine
//# ends: returned [0,0,true]
const d = new Date(0)
return [d.getTimezoneOffset(), d.getHours(), d.toString().includes('1970')]
//# waiting on shared memory
//# ends: returned "harmless"
try { const a = globalThis['Atom' + 'ics']; const s = globalThis['SharedArray' + 'Buffer']; a.wait(new Int32Array(new s(4)), 0, 0); return 'waited' } catch { return 'harmless' }
//# when memory is collected
//# ends: returned "harmless"
let seen = 'harmless'
try { const R = globalThis['Weak' + 'Ref']; if (R) { new R({}).deref(); seen = 'visible' } } catch {}
try { const F = globalThis['Finalization' + 'Registry']; if (F) { new F(() => {}).register({}, 1); seen = 'visible' } } catch {}
return seen
//# arguments.callee
//# ends: thrown or unsound
return (function () { return arguments.callee })()
//# the caller of a function
//# ends: thrown or returned null or returned "harmless"
function f() { return f.caller }
const c = f()
return c === undefined ? 'harmless' : c
//# what this is
//# ends: returned "harmless"
const self = this
const inner = (function () { return this })()
return inner === undefined && (self === undefined || self === null || typeof self === 'object') ? 'harmless' : 'leaked'
//# the wrapper's own variables
//# ends: returned []
const names = ['resolve', 'reject', 'host', '__convoke', 'calls', 'pending', 'answers', 'meta', 'state', 'prelude', '__host', 'native', 'send', 'emit']
const there = names.filter(n => n in globalThis)
return there
//# what the stack says of the host
//# ends: returned "harmless"
let stack = ''
try { await agent(1) } catch (e) { stack = String(e.stack) }
return stack.includes('/work') || stack.includes('.rs') ? stack : 'harmless'
//# args and budget are changed
//# ends: returned "harmless"
let left = budget.remaining()
try { budget.total = 1e9 } catch {}
try { budget.spent = () => -1 } catch {}
try { Object.defineProperty(budget, 'remaining', { value: () => 1 }) } catch {}
try { Object.setPrototypeOf(budget, {}) } catch {}
return budget.remaining() === left && budget.total === null ? 'harmless' : 'changed'
//# globals of the dialect are replaced for oneself alone
//# ends: returned "harmless"
try { globalThis.agent = () => 'mine' } catch {}
try { globalThis.log = () => { throw 1 } } catch {}
const r = await parallel([async () => { log('x'); return 1 }])
return r.length === 1 ? 'harmless' : 'changed'
//# the locale of the machine
//# ends: returned or thrown
return [(1234.5).toLocaleString(), new Date(0).toLocaleDateString(), ['b', 'a'].sort((x, y) => x.localeCompare(y))]
//# a debugger statement
//# ends: returned 1
debugger
return 1
