// Finds the first slow commit by halving; asks again where a measurement is missing.
// args: {"commits":["c0","c1","c2","c3","c4","c5","c6","c7","c8"],"metric":"startup"}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'slow-commit',
  description: 'Bisect a regression with two measurements per commit',
  phases: [{ title: 'Measure' }, { title: 'Explain' }],
}

const { commits = [], metric = 'time' } = args ?? {}
const measured = new Map()
const MEASURE = { type: 'object', required: ['slow'], properties: { slow: { type: 'boolean' }, ms: { type: 'number', minimum: 1, maximum: 999 } } }

async function slow(commit) {
  if (measured.has(commit)) return measured.get(commit)
  const two = await parallel([1, 2].map(n => () => agent(`Measure ${metric} at ${commit} (run ${n})`, { schema: MEASURE, label: `${commit} #${n}`, phase: 'Measure' })))
  const good = two.filter(Boolean)
  const verdict = good.length === 0 ? undefined : good.some(m => m.slow)
  measured.set(commit, verdict)
  return verdict
}

let low = 0
let high = commits.length - 1
let steps = 0
while (low < high && steps < 20) {
  steps += 1
  const middle = low + ((high - low) >> 1)
  const verdict = await slow(commits[middle])
  if (verdict === undefined) {
    // Not measurable: look at its neighbour instead of guessing.
    low = middle + 1
    continue
  }
  if (verdict) high = middle
  else low = middle + 1
}
const suspect = commits[low] ?? null
const unmeasured = [...measured].filter(([, v]) => v === undefined).map(([c]) => c)

phase('Explain')
const why = suspect ? await agent(`What in ${suspect} could make ${metric} slower?`, { label: `why ${suspect}`, effort: 'xhigh' }).catch(() => null) : null
return { suspect, steps, measured: measured.size, unmeasured, why: why ?? 'unknown' }
