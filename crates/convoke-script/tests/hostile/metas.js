// What a program says of itself must be a literal, and it is never evaluated.
//# a call in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: (() => { while (true) {} })() }
//# an identifier in meta
//# raw
//# ends: unsound
const n = 'x'
export const meta = { name: n, description: 'y' }
//# an identifier that is declared later
//# raw
//# ends: unsound
export const meta = { name: n, description: 'y' }
const n = 'x'
//# a getter in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', get description() { return 'y' } }
//# a method in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', run() {} }
//# a computed key in meta
//# raw
//# ends: unsound
export const meta = { ['name']: 'x', description: 'y' }
//# a spread in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', ...{} }
//# a spread in an array of meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', phases: [...[]] }
//# a hole in an array of meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', tags: [1, , 2] }
//# an interpolation in meta
//# raw
//# ends: unsound
export const meta = { name: `x${1}`, description: 'y' }
//# a tagged template in meta
//# raw
//# ends: unsound
export const meta = { name: String.raw`x`, description: 'y' }
//# a regular expression in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', pattern: /(a+)+$/ }
//# a plus sign in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', n: +1 }
//# a BigInt in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', n: 10n }
//# undefined in meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', n: undefined }
//# a function as meta
//# raw
//# ends: unsound
export const meta = function () { return {} }
//# a class as meta
//# raw
//# ends: unsound
export const meta = class { static name = 'x' }
//# a comma in front of meta
//# raw
//# ends: unsound
export const meta = (0, { name: 'x', description: 'y' })
//# a second declarator beside meta
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y' }, other = agent('x')
//# meta that is taken apart
//# raw
//# ends: unsound
export const { meta } = { meta: { name: 'x', description: 'y' } }
//# meta that is not exported
//# raw
//# ends: unsound
const meta = { name: 'x', description: 'y' }
//# meta that is not first
//# raw
//# ends: unsound
log('first')
export const meta = { name: 'x', description: 'y' }
//# an import in front of meta
//# raw
//# ends: unsound
import { x } from './x.js'
export const meta = { name: 'x', description: 'y' }
//# two metas
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y' }
export const meta = { name: 'z', description: 'y' }
//# the key __proto__
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', __proto__: { polluted: true } }
//# the key "__proto__" in a string, further down
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', more: [{ '__proto__': 1 }] }
//# the key constructor
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', constructor: 1 }
//# the key prototype
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', more: { prototype: {} } }
//# no name
//# raw
//# ends: unsound
export const meta = { description: 'y' }
//# an empty name
//# raw
//# ends: unsound
export const meta = { name: '', description: 'y' }
//# a name that is a number
//# raw
//# ends: unsound
export const meta = { name: 5, description: 'y' }
//# no description
//# raw
//# ends: unsound
export const meta = { name: 'x' }
//# a description that is a list
//# raw
//# ends: unsound
export const meta = { name: 'x', description: ['y'] }
//# a name that is said twice
//# raw
//# ends: unsound or returned
export const meta = { name: 'x', name: 'z', description: 'y' }
return 1
//# numbers beyond all numbers
//# raw
//# ends: unsound or returned
export const meta = { name: 'x', description: 'y', big: 1e400, small: -1e400, tiny: 1e-400, long: 123456789012345678901234567890 }
return 1
//# meta a hundred thousand levels deep
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', deep: @@repeat(100000,"[")@@@@repeat(100000,"]")@@ }
//# meta of objects in objects
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', deep: @@repeat(50000,"{a:")@@1@@repeat(50000,"}")@@ }
//# meta with fifty thousand keys
//# raw
//# ends: unsound or returned
export const meta = { name: 'x', description: 'y', @@count(40000,"k#:1,")@@ }
return 1
//# meta that is a million keys long
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', @@count(1000000,"k#:1,")@@ }
return 1
//# a name of a hundred thousand pieces
//# raw
//# ends: unsound
export const meta = { name: 'x'@@repeat(100000,"+'x'")@@, description: 'y' }
return 1
//# a name with control characters
//# raw
//# ends: unsound
export const meta = { name: 'x\u001b[2J\n\u0000/../../etc', description: 'y\u202e' }
return 1
//# a name that turns the direction of text around
//# raw
//# ends: unsound
export const meta = { name: 'safe\u202ecod.exe', description: 'y' }
return 1
//# a title of two lines
//# raw
//# ends: unsound
export const meta = { name: 'x', description: 'y', phases: [{ title: 'one\nforged: done' }] }
return 1
//# a hundred phases that are no phases
//# raw
//# ends: unsound or returned
export const meta = { name: 'x', description: 'y', phases: [1, null, [], {}, { title: 5 }, { title: '' }, 'ok', true] }
return 1
//# phases that are no list
//# raw
//# ends: unsound or returned
export const meta = { name: 'x', description: 'y', phases: { title: 'x' } }
return 1
//# lone surrogates in meta
//# raw
//# ends: unsound or returned
export const meta = { name: '\ud800', description: '\udfff', tags: ['\u{10ffff}'] }
return 1
//# meta is changed by the body
//# ends: thrown or returned "harmless"
meta.name = 'other'
return 'harmless'
//# meta is declared again by the body
//# ends: returned 1 or unsound
const meta = 1
return meta
//# meta with a type
//# raw
//# ends: unsound
export const meta: Meta = { name: 'x', description: 'y' } as const
//# meta with negative numbers, nulls and nested lists is fine
//# raw
//# ends: returned 1
export const meta = { name: `x`, 'description': "y" + 'z', n: -1.5e3, t: true, f: false, z: null, l: [[1, [2]], { a: { b: 1 } }], 5: 'five', }
return 1
