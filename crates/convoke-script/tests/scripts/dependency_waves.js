// Upgrades packages wave by wave: one goes when everything it needs has gone.
// args: {"graph":{"app":["web","db"],"web":["core"],"db":["core"],"core":[],"docs":[]}}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'upgrade-waves',
  description: 'Upgrade packages in the order of their dependencies',
  phases: [{ title: 'Upgrade' }, { title: 'Report' }],
}

const graph = args?.graph ?? {}
const state = new Map(Object.keys(graph).map(name => [name, 'open']))
const waves = []

const ready = name => graph[name].every(needed => state.get(needed) === 'done')
const doomed = name => graph[name].some(needed => ['failed', 'skipped'].includes(state.get(needed)))

outer: while ([...state.values()].includes('open')) {
  for (const [name, s] of state) {
    if (s === 'open' && doomed(name)) {
      state.set(name, 'skipped')
      continue outer
    }
  }
  const wave = [...state].filter(([name, s]) => s === 'open' && ready(name)).map(([name]) => name)
  if (wave.length === 0) throw new Error(`a cycle: ${[...state].filter(([, s]) => s === 'open').map(([n]) => n)}`)
  phase('Upgrade')
  const results = await parallel(
    wave.map(name => () =>
      agent(`Upgrade ${name}; it needs ${graph[name].join(' and ') || 'nothing'}. Run its tests.`, { label: `upgrade:${name}`, schema: { type: 'object', required: ['version', 'green'], properties: { version: { type: 'string' }, green: { type: 'boolean' } } } }),
    ),
  )
  wave.forEach((name, i) => state.set(name, results[i] ? 'done' : 'failed'))
  waves.push(wave)
}

phase('Report')
const counts = {}
for (const s of state.values()) counts[s] = (counts[s] ?? 0) + 1
const report = await agent(`Report on: ${JSON.stringify(Object.fromEntries(state))}`, { label: 'report' }).catch(() => null)
return { waves, counts, report: report ?? 'no report' }
