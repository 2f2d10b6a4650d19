// Names for a product meet in pairs; the winner of each pair goes on to the next round.
// args: {"names":["Lantern","Quill","Harbor","Sprout","Flint"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'name-tournament',
  description: 'A knock-out tournament between names, one judge per match',
  phases: [{ title: 'Matches' }, { title: 'Final' }],
}

const MATCH = {
  type: 'object',
  required: ['winner'],
  properties: { winner: { enum: ['left', 'right'] }, reason: { type: 'string' } },
}

let field = [...(args?.names ?? [])]
if (field.length < 2) return { winner: field[0] ?? null, rounds: [] }
const rounds = []
while (field.length > 1) {
  const last = field.length === 2
  phase(last ? 'Final' : 'Matches')
  const pairs = []
  for (let i = 0; i + 1 < field.length; i += 2) pairs.push([field[i], field[i + 1]])
  // The odd one out has a bye.
  const bye = field.length % 2 === 1 ? [field.at(-1)] : []
  const verdicts = await parallel(
    pairs.map(([left, right]) => () =>
      agent(`Which is the better name for a build tool: "${left}" or "${right}"?`, {
        schema: MATCH,
        label: `${left} v ${right}`,
        model: last ? 'opus' : 'haiku',
      }),
    ),
  )
  const next = pairs.map(([left, right], i) => (verdicts[i]?.winner === 'right' ? right : left))
  rounds.push(pairs.map(([left, right], i) => ({ left, right, winner: next[i], judged: verdicts[i] !== null })))
  field = [...next, ...bye]
}
return { winner: field[0], rounds, judged: rounds.flat().filter(m => m.judged).length }
