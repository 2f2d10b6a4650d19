// Asks for dead code again and again, and stops after two rounds that brought nothing new.
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'dead-code',
  description: 'Find unused functions until two rounds in a row find nothing',
  phases: [{ title: 'Find' }, { title: 'Confirm' }],
}

const LIST = {
  type: 'object',
  additionalProperties: false,
  required: ['items'],
  properties: {
    items: {
      type: 'array',
      maxItems: 5,
      items: {
        type: 'object',
        required: ['symbol', 'file'],
        properties: { symbol: { type: 'string', enum: ['alpha', 'beta', 'gamma', 'delta'] }, file: { type: 'string', enum: ['a.rs', 'b.rs'] } },
      },
    },
  },
}
const key = item => `${item.file}::${item.symbol}`
const found = new Map()
let dry = 0
let round = 0

while (dry < 2 && round < 12) {
  round++
  phase('Find')
  const batches = await parallel(
    ['exports', 'helpers'].map(area => () =>
      agent(`Round ${round}: list unused ${area}. Skip: ${[...found.keys()].sort().join(', ') || 'nothing yet'}`, {
        label: `find:${area}:${round}`,
        schema: LIST,
        phase: 'Find',
      }),
    ),
  )
  const fresh = batches.filter(Boolean).flatMap(b => b.items).filter(i => !found.has(key(i)))
  for (const item of fresh) found.set(key(item), item)
  dry = fresh.length === 0 ? dry + 1 : 0
}

phase('Confirm')
const confirmed = await pipeline(
  [...found.values()],
  item => agent(`Is ${item.symbol} in ${item.file} really unused?`, { label: key(item), phase: 'Confirm', schema: { type: 'object', required: ['unused'], properties: { unused: { type: 'boolean' } } } }),
  (answer, item) => ({ ...item, status: answer === null ? 'unknown' : answer.unused ? 'unused' : 'used' }),
)
return { rounds: round, items: confirmed.filter(Boolean).sort((a, b) => (key(a) < key(b) ? -1 : 1)) }
