// Labels a sample of a data set, measures how far labellers agree, and asks for more where they do not.
// args: {"rows":["great, thanks","meh","never again","it works, mostly","??"],"labels":["pos","neg","mixed"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'label-sample',
  description: 'Two labellers per row, a third one where they differ',
  phases: [{ title: 'Label' }, { title: 'Settle' }],
}

const rows = args?.rows ?? []
const LABEL = { type: 'object', required: ['label'], properties: { label: { type: 'string', enum: args?.labels ?? ['a', 'b'] } } }
// Instead of chance: which row is looked at first depends on its index alone.
const order = rows.map((_, i) => i).sort((a, b) => ((a * 7 + 3) % rows.length) - ((b * 7 + 3) % rows.length))

const labelled = await pipeline(
  order,
  async i => {
    const [first, second] = await parallel([
      () => agent(`Label: ${rows[i]}`, { schema: LABEL, label: `row ${i} a`, phase: 'Label' }),
      () => agent(`Label: ${rows[i]}`, { schema: LABEL, label: `row ${i} b`, phase: 'Label' }),
    ])
    return { i, votes: [first?.label, second?.label].filter(v => v !== undefined) }
  },
  async entry => {
    const { i, votes } = entry
    if (votes.length === 2 && votes[0] === votes[1]) return { ...entry, label: votes[0], settled: 'agreed' }
    const third = await agent(`Two people disagree (${votes.join(' / ') || 'nobody answered'}). Label: ${rows[i]}`, { schema: LABEL, label: `row ${i} c`, phase: 'Settle' })
    if (!third) return { ...entry, label: votes[0] ?? null, settled: votes.length ? 'one vote' : 'open' }
    return { ...entry, label: third.label, settled: 'third' }
  },
)

const table = labelled.filter(Boolean).sort((a, b) => a.i - b.i)
const agreement = table.length ? table.filter(t => t.settled === 'agreed').length / table.length : 0
return { labels: table.map(t => t.label), settled: table.map(t => t.settled), agreement: Number(agreement.toFixed(3)) }
