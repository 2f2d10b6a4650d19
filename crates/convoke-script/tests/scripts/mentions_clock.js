// This text mentions Date.now(), Math.random() and new Date(), and none of it is code.
// args: {"paths":["lib/jitter.js","lib/cache.js"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'determinism-lint',
  description: 'Find calls of Date.now() and Math.random() in tested code',
  phases: [{ title: 'Find' }, { title: 'Advise' }],
}

/* A program that says import('fs') or eval('x') in a comment says nothing. */
const FORBIDDEN = ['Date.now()', "Math.random()", `new Date()`, 'performance.now()', 'eval(text)', 'import("fs")']
const PATTERN = /Date\.now\(\)|Math\.random\(\)|new Date\(\)/g
const sample = "const id = Date.now() + '-' + Math.random()"
const hits = sample.match(PATTERN) ?? []

const WHERE = {
  type: 'object',
  required: ['uses'],
  properties: {
    uses: {
      type: 'array',
      items: { type: 'object', required: ['line', 'call'], properties: { line: { type: 'integer', minimum: 1, maximum: 400 }, call: { type: 'string', description: 'such as Math.random()' } } },
    },
  },
}

phase('Find')
const results = await pipeline(
  args?.paths ?? [],
  path => agent(`In ${path}, list every use of: ${FORBIDDEN.join(', ')}. Do not count comments.`, { label: path, phase: 'Find', schema: WHERE }),
  (found, path) => {
    const uses = found?.uses ?? []
    if (!uses.length) return { path, uses: [], advice: null }
    return agent(`Lines ${uses.map(u => u.line).join(', ')} of ${path} call Date.now(); say how to inject a clock instead.`, { label: `advise:${path}`, phase: 'Advise' })
      .then(advice => ({ path, uses, advice }))
  },
)
return { results: results.filter(Boolean), sample: hits, forbidden: FORBIDDEN.length }
