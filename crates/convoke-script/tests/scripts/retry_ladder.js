// Small models first; what they cannot do goes up the ladder.
// args: {"queries":["orders by week","refunds by country","users without orders"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'query-tuner',
  description: 'Rewrite slow queries, with a stronger model where a weaker one fails',
  phases: [{ title: 'Rewrite' }],
}

const LADDER = [
  { model: 'haiku', effort: 'low' },
  { model: 'sonnet', effort: 'medium' },
  { model: 'opus', effort: 'high' },
]
const REWRITE = {
  type: 'object',
  required: ['sql', 'faster'],
  properties: { sql: { type: 'string' }, faster: { type: 'boolean' }, factor: { type: 'number', minimum: 1, maximum: 50 } },
}

async function climb(query) {
  const tried = []
  for (const step of LADDER) {
    tried.push(step.model)
    let result
    try {
      result = await agent(`Rewrite so that it runs faster: ${query}`, { ...step, schema: REWRITE, label: `${step.model}: ${query}`, isolation: undefined })
    } catch {
      continue
    }
    if (result?.faster) return { query, by: step.model, factor: result.factor ?? 1, tried }
  }
  return { query, by: null, factor: 1, tried }
}

phase('Rewrite')
const results = await parallel((args?.queries ?? []).map(q => () => climb(q)))
const steps = results.reduce((n, r) => n + r.tried.length, 0)
log(`${steps} attempts for ${results.length} queries`)
const [solved, unsolved] = results.reduce(([yes, no], r) => (r.by ? [[...yes, r], no] : [yes, [...no, r]]), [[], []])
return {
  solved: solved.map(({ query, by, factor }) => ({ query, by, factor: +factor.toFixed(2) })),
  unsolved: unsolved.map(u => u.query),
  steps,
  cheapest: solved.filter(s => s.by === LADDER[0].model).length,
}
