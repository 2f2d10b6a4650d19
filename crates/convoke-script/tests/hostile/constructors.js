// Ways to a function made of text. None may give one. Format: see ../it/attacks.rs.
//# an object's constructor's constructor
//# ends: returned "harmless"
try { return 'escaped: ' + ({}).constructor.constructor('return 1')() } catch (e) { return 'harmless' }
//# the constructor of an async function
//# ends: returned "harmless"
try { return 'escaped: ' + typeof (async () => {}).constructor('return 1') } catch (e) { return 'harmless' }
//# the constructor of a generator function
//# ends: returned "harmless"
try { return 'escaped: ' + typeof (function* () {}).constructor('yield 1') } catch (e) { return 'harmless' }
//# the constructor of an async generator function
//# ends: returned "harmless"
try { return 'escaped: ' + typeof (async function* () {}).constructor('yield 1') } catch (e) { return 'harmless' }
//# the constructors of everything the host gave
//# ends: returned []
const given = [agent, parallel, pipeline, phase, log, workflow, verify, sh, checkpoint, setTimeout, clearTimeout, budget.spent, budget.remaining, console.log, URL, args, budget, console]
const open = []
for (const thing of given) {
  for (let at = thing, depth = 0; at !== null && at !== undefined && depth < 6; at = Object.getPrototypeOf(at), depth++) {
    for (const key of Reflect.ownKeys(at)) {
      let value
      try { value = at[key] } catch { continue }
      if (typeof value !== 'function') continue
      try { const made = value.constructor('return 1'); if (typeof made === 'function') open.push(String(key)) } catch {}
    }
  }
}
return open
//# Reflect.construct with a found constructor
//# ends: returned "harmless"
try { return 'escaped: ' + Reflect.construct((() => {}).constructor, ['return 1'])() } catch (e) { return 'harmless' }
//# a class that extends the function constructor
//# ends: returned "harmless"
try { class F extends (() => {}).constructor {} ; return 'escaped: ' + new F('return 1')() } catch (e) { return 'harmless' }
//# the prototype of an async function by its prototype
//# ends: returned "harmless"
try { return 'escaped: ' + typeof Object.getPrototypeOf(async function () {}).constructor('return 1') } catch (e) { return 'harmless' }
//# the constructor of a built-in getter
//# ends: returned "harmless"
const get = Object.getOwnPropertyDescriptor(Map.prototype, 'size').get
try { return 'escaped: ' + get.constructor('return 1')() } catch (e) { return 'harmless' }
//# the constructor of a bound function
//# ends: returned "harmless"
try { return 'escaped: ' + (() => {}).bind(null).constructor('return 1')() } catch (e) { return 'harmless' }
//# the constructor of an error that the host threw
//# ends: returned "harmless"
try { await agent(42) } catch (e) {
  try { return 'escaped: ' + e.constructor.constructor('return 1')() } catch { return 'harmless' }
}
//# the constructor of a promise that the host made
//# ends: returned "harmless"
const p = agent('hello')
try { return 'escaped: ' + p.constructor.constructor('return 1')() } catch { return 'harmless' } finally { await p }
//# the constructor of a value that the host answered
//# ends: returned "harmless"
const got = await agent('hello', { schema: { type: 'object', properties: { a: { type: 'string' } } } })
try { return 'escaped: ' + got.constructor.constructor('return 1')() } catch { return 'harmless' }
//# eval, called directly
//# ends: unsound
return eval('1 + 1')
//# eval, called indirectly
//# ends: unsound
return (0, eval)('1 + 1')
//# eval, by a name that is put together
//# ends: returned "harmless"
const f = globalThis['ev' + 'al']
try { return f === undefined ? 'harmless' : 'escaped: ' + f('1 + 1') } catch { return 'harmless' }
//# eval, spelled with an escape
//# ends: unsound
return \u0065val('1 + 1')
//# Function, by name
//# ends: unsound
return new Function('return 1')()
//# Function, by a name that is put together
//# ends: returned "harmless"
const F = globalThis['Func' + 'tion']
try { return F === undefined ? 'harmless' : 'escaped: ' + F('return 1')() } catch { return 'harmless' }
//# a timer that is given text
//# ends: returned "harmless"
let fired = 'harmless'
globalThis.hit = () => { fired = 'escaped' }
try { setTimeout('hit()', 1) } catch {}
await new Promise(r => setTimeout(r, 5))
return fired
//# a reviver's this
//# ends: returned "harmless"
let open = 'harmless'
JSON.parse('{"a":1}', function () { try { this.constructor.constructor('return 1')(); open = 'escaped' } catch {} })
return open
//# the raw strings of a tagged template
//# ends: returned "harmless"
try { return 'escaped: ' + ((s) => s.raw.constructor.constructor('return 1')())`x` } catch { return 'harmless' }
//# a function constructor that was frozen over by an own property
//# ends: returned "harmless"
const fn = () => {}
try { fn.constructor = 1 } catch {}
delete fn.constructor
try { return 'escaped: ' + fn.constructor('return 1')() } catch { return 'harmless' }
//# WebAssembly by name
//# ends: unsound or thrown or returned "harmless"
try { return 'escaped: ' + new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])) } catch { return 'harmless' }
//# a dynamic import
//# ends: unsound
const fs = await import('fs')
return fs
//# a dynamic import, hidden in a function that is never called
//# ends: unsound
const never = () => import('os')
return 1
//# a dynamic import of data
//# ends: unsound
return await import('data:text/javascript,export default 1')
//# import.meta
//# ends: unsound
return import.meta.url
//# a static import
//# ends: unsound
import fs from 'fs'
return fs
//# a new realm
//# ends: returned "harmless"
return typeof globalThis['Shadow' + 'Realm'] === 'undefined' ? 'harmless' : 'escaped'
