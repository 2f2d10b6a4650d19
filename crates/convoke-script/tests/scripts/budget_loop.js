// Goes on asking for edge cases until the budget is nearly gone or five rounds are over.
// args: {"function":"parseDuration","reserve":6000}
// budget: 20000
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'edge-case-hunt',
  description: 'Collect edge cases for one function while there is budget',
  phases: [{ title: 'Hunt' }],
}

const target = args.function
const reserve = args.reserve ?? 10_000
const CASES = {
  type: 'object',
  required: ['cases'],
  properties: { cases: { type: 'array', items: { type: 'string' }, minItems: 1 } },
}

const known = new Set()
let round = 0
let empty = 0
phase('Hunt')
while (budget.total && budget.remaining() > reserve && empty < 3) {
  round += 1
  const before = known.size
  const found = await parallel(
    ['boundaries', 'encodings', 'abuse'].map(theme => () =>
      agent(`Round ${round}: edge cases of ${target} about ${theme}. Known already: ${known.size}.`, {
        label: `${theme} #${round}`,
        schema: CASES,
      }),
    ),
  )
  for (const part of found) {
    if (!part) continue
    for (const text of part.cases) known.add(text.trim().toLowerCase())
  }
  empty = known.size === before ? empty + 1 : 0
  log(`round ${round}: ${known.size} cases, ${budget.remaining()} tokens left of ${budget.total}`)
}
const stopped = budget.remaining() > reserve ? 'dry' : 'budget'
return { target, rounds: round, stopped, cases: [...known].sort(), frozen: Object.isFrozen(budget) }
