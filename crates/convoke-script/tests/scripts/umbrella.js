// Runs a saved workflow for each package and goes on without those that fail.
// args: {"packages":["api","web","cli"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'umbrella',
  description: 'One child workflow per package, then a summary of all',
  phases: [{ title: 'Children' }, { title: 'Summary' }],
}

const packages = args?.packages ?? []
phase('Children')
const counted = await pipeline(
  packages,
  name => workflow('child_count', { package: name, parts: ['src', 'tests'] }).catch(() => null),
  (counts, name) => ({ name, counts, ok: counts !== null }),
)

// No second argument: the child's own args are undefined, and it says so.
const brief = await workflow({ scriptPath: 'children/child_brief.js' }, undefined).catch(e => ({ failed: e.message }))
const explicit = await workflow('child_brief', null).catch(e => ({ failed: e.message }))

// These three cannot work, and each of them is an error that can be caught.
const problems = []
for (const name of ['child_broken', 'child_nested', 'no_such_child']) {
  try {
    await workflow(name, {})
    problems.push(`${name} ran`)
  } catch (e) {
    problems.push(`${name} failed`)
    log(`${name}: ${e.message}`)
  }
}

phase('Summary')
const text = await agent(`Summarise: ${counted.filter(Boolean).map(c => `${c.name}=${c.counts?.total ?? '?'}`).join(' ')}`, {
  label: 'summary',
}).catch(() => null)
return { counted, brief, explicit, problems, text }
