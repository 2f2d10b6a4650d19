export const meta = { name: 'child-brief', description: 'Says what its arguments are' }
const kind = args === undefined ? 'undefined' : args === null ? 'null' : typeof args
const text = await agent(`Say in one line what to do with ${kind} arguments`).catch(() => null)
return { kind, text }
