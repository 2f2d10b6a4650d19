// Sources that try to mean something else than they seem to.
//# closing the function around the body
//# ends: unsound
return 1 })(); (async () => { return 2
//# closing it with a comment
//# ends: unsound
}}))); /* 
//# closing it in the last line
//# ends: unsound
return 1 } // comment at the end
//# a comment that is not closed
//# ends: unsound
return 1 /* and on
//# a line comment in the last line
//# ends: returned 1
return 1 // })(); evil(
//# a template that is not closed
//# ends: unsound
return `x
//# an HTML comment at the start of a line
//# ends: unsound
<!-- return 1
return 2
//# an HTML comment's end at the start of a line
//# ends: unsound
let x = 1
--> x
return 2
//# an HTML comment in the middle means the same to parser and engine
//# ends: returned true or unsound
let x = 0, y = 1
return x <!--y
//# with
//# ends: unsound
with ({}) { }
//# octal numbers
//# ends: unsound
return 010
//# delete of a variable
//# ends: unsound
let x = 1
delete x
//# an assignment to nothing that was declared
//# ends: thrown
undeclared = 1
return 1
//# an assignment to a constant
//# ends: thrown or unsound
const x = 1
x = 2
//# a name that is declared twice
//# ends: unsound or thrown
const a = 1
const a = 2
return a
//# a var over a let
//# ends: unsound or thrown
let a = 1
{ var a = 2 }
return a
//# a break that breaks nothing
//# ends: unsound or thrown
if (args) { break }
//# a private name outside of a class
//# ends: unsound or thrown
return ({}).#x
//# a regular expression that is none
//# ends: unsound or thrown
return /(/.test('x')
//# new.target at the top
//# ends: unsound or thrown or returned
return new.target
//# super at the top
//# ends: unsound or thrown
return super.x
//# await in a function that is not async
//# ends: unsound
const f = () => { return await 1 }
//# yield at the top
//# ends: unsound
yield 1
//# a second export
//# ends: unsound
export const other = 1
return 1
//# a default export
//# ends: unsound
export default 1
//# TypeScript
//# ends: unsound
const x: number = 1
interface A { a: string }
return x as any
//# JSX
//# ends: unsound
return <a href="x">text</a>
//# arguments at the top
//# ends: returned or unsound or thrown
return typeof arguments
//# a null byte in the source
//# ends: unsound or thrown
return 1 @@repeat(1,"\u0000")@@ + 1
//# a null byte in a string
//# ends: returned 3 or unsound
return 'a@@repeat(1,"\u0000")@@b'.length
//# a null byte in a comment
//# ends: returned 1 or unsound
// @@repeat(1,"\u0000")@@ evil
return 1
//# line separators in strings
//# ends: returned 3
return 'a@@repeat(1,"\u2028")@@b'.length
//# a line separator ends a comment
//# ends: returned 2
// return 1 @@repeat(1,"\u2028")@@ return 2
//# names from everywhere
//# ends: returned 6
const ünï = 1, 变量 = 2, \u{61}b = 3
return ünï + 变量 + ab
//# a name with an invisible joiner
//# ends: returned 3
const a@@repeat(1,"\u200d")@@b = 1, ab = 2
return a@@repeat(1,"\u200d")@@b + ab
//# text that turns around
//# ends: returned or unsound
/*@@repeat(1,"\u202e")@@ } evil(); { @@repeat(1,"\u2066")@@*/
return 1
//# a byte order mark before everything
//# raw
//# ends: returned 1
@@repeat(1,"\ufeff")@@export const meta = { name: 'bom', description: 'begins with a mark' }
return 1
//# a byte order mark in the middle
//# ends: returned 2
const x = 1@@repeat(1,"\ufeff")@@ + 1
return x
//# carriage returns
//# raw
//# ends: returned 3
// comment@@repeat(1,"\r\n")@@export const meta = { name: 'crlf', description: 'from another system' }@@repeat(1,"\r\n")@@const a = 1@@repeat(1,"\r")@@const b = 2@@repeat(1,"\r\n")@@return a + b@@repeat(1,"\r\n")@@
//# a source of one character too many
//# ends: unsound
// @@repeat(524288,"x")@@
return 1
//# a source of half a million characters in one string
//# ends: returned 500000
return '@@repeat(500000,"x")@@'.length
//# a hundred thousand brackets
//# ends: unsound or stack or thrown
return @@repeat(100000,"[")@@@@repeat(100000,"]")@@
//# a hundred thousand open brackets
//# ends: unsound
return @@repeat(100000,"[")@@
//# a hundred thousand parentheses
//# ends: unsound or stack or thrown or returned
return @@repeat(100000,"(")@@1@@repeat(100000,")")@@
//# a hundred thousand braces
//# ends: unsound or stack or thrown or returned
@@repeat(100000,"{")@@@@repeat(100000,"}")@@
return 1
//# a hundred thousand calls
//# ends: unsound or stack or thrown or returned
const f = x => x
return @@repeat(100000,"f(")@@1@@repeat(100000,")")@@
//# a hundred thousand negations
//# ends: unsound or stack or thrown or returned
return @@repeat(100000,"!")@@1
//# a hundred thousand minus signs
//# ends: unsound or stack or thrown or returned
return @@repeat(100000,"- ")@@1
//# a hundred thousand additions
//# ends: unsound or stack or thrown or returned
return 1@@repeat(100000,"+1")@@
//# a hundred thousand arrows
//# ends: unsound or stack or thrown or returned
const f = @@repeat(100000,"a=>")@@1
return 1
//# a hundred thousand conditions
//# ends: unsound or stack or thrown or returned
return @@repeat(100000,"0?1:")@@2
//# a hundred thousand members
//# ends: unsound or stack or thrown or returned
const a = {}
return a@@repeat(100000,"?.b")@@
//# a hundred thousand powers
//# ends: unsound or stack or thrown or returned
return 1@@repeat(100000,"**1")@@
//# a hundred thousand assignments
//# ends: unsound or stack or thrown or returned
let a
return @@repeat(100000,"a=")@@1
//# a hundred thousand else branches
//# ends: unsound or stack or thrown or returned
if (0) {} @@repeat(50000,"else if (0) {} ")@@
return 1
//# ten thousand templates in each other
//# ends: unsound or stack or thrown or returned
return @@repeat(10000,"`${")@@1@@repeat(10000,"}`")@@
//# a hundred thousand new
//# ends: unsound or stack or thrown
return @@repeat(100000,"new ")@@Object
//# a hundred thousand awaits
//# ends: unsound or stack or thrown or returned or ticks
return @@repeat(80000,"await ")@@1
//# ten thousand functions in each other
//# ends: unsound or stack or thrown or returned
@@repeat(10000,"function f(){")@@@@repeat(10000,"}")@@
return 1
//# ten thousand classes in each other
//# ends: unsound or stack or thrown or returned
@@repeat(10000,"class A{static{")@@@@repeat(10000,"}}")@@
return 1
//# a hundred thousand labels
//# ends: unsound or stack or thrown or returned
@@count(30000,"l#: ")@@ for (;;) break
return 1
//# a deep destructuring
//# ends: unsound or stack or thrown
const @@repeat(50000,"[")@@a@@repeat(50000,"]")@@ = []
return 1
//# a regular expression literal of nested groups
//# ends: unsound or stack or thrown or returned
return /@@repeat(50000,"(")@@@@repeat(50000,")")@@/.test('')
//# forty thousand statements
//# ends: returned 40000
let n = 0
@@repeat(40000,"n += 1;")@@
return n
//# forty thousand variables
//# ends: returned or unsound or thrown
@@count(30000,"var v#=#;")@@
return v29999
//# a shebang
//# raw
//# ends: returned 1 or unsound
#!/usr/bin/env node
export const meta = { name: 'shebang', description: 'begins like a program' }
return 1
//# nothing at all
//# raw
//# ends: unsound
@@repeat(1,"")@@
//# only a comment
//# raw
//# ends: unsound
// nothing
//# noise
//# raw
//# ends: unsound
@@repeat(1,"\u0001\u0002\u0003\u00ff\ud83d\ude00 {{{ \u0000")@@
