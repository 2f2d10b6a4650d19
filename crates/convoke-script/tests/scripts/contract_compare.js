// Clause by clause, what does the new contract change? Uses every corner of the schema language that scripts use.
// args: {"clauses":["term","liability","payment"],"parties":{"buyer":"Orla","seller":"Finch"}}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'contract-compare',
  description: 'Compare two versions of a contract clause by clause',
  phases: [{ title: 'Compare' }, { title: 'Weigh' }],
}

const CHANGE = {
  type: 'object',
  additionalProperties: false,
  required: ['kind', 'amount', 'quotes'],
  properties: {
    kind: { enum: ['none', 'wording', 'substance'], description: 'how much it matters' },
    amount: { type: ['number', 'null'], description: 'money at stake, if any' },
    quotes: {
      type: 'array',
      minItems: 1,
      maxItems: 2,
      items: { type: 'object', required: ['side', 'text'], additionalProperties: true, properties: { side: { enum: ['old', 'new'] }, text: { type: 'string', maxLength: 80 } } },
    },
    code: { type: 'string', pattern: '^[A-Z]-[0-9]{2}$' },
  },
}
const WEIGHTS = {
  type: 'object',
  required: ['weights'],
  properties: {
    weights: { type: 'object', additionalProperties: { type: 'integer', minimum: 0, maximum: 100 } },
    remark: { type: ['string', 'null'] },
  },
}

const parties = Object.entries(args?.parties ?? {})
const rows = await pipeline(
  args?.clauses ?? [],
  clause => agent(`Compare the clause "${clause}" in both versions.`, { schema: CHANGE, label: clause, phase: 'Compare' }),
  async (change, clause) => {
    if (!change || change.kind === 'none') return { clause, kind: change?.kind ?? 'unknown', sides: [] }
    const sides = await parallel(
      parties.map(([role, name]) => () => agent(`What does the change of "${clause}" mean for the ${role}, ${name}?`, { label: `${clause}/${role}`, phase: 'Compare' })),
    )
    return { clause, kind: change.kind, amount: change.amount ?? 0, sides: sides.map((s, i) => [parties[i][0], s]) }
  },
)

phase('Weigh')
const weights = await agent(`Weigh: ${rows.map(r => r?.clause).join(', ')}`, { schema: WEIGHTS, label: 'weigh' }).catch(() => null)
const total = Object.values(weights?.weights ?? {}).reduce((a, b) => a + b, 0)
return { rows, weighed: weights !== null, total, unknown: rows.filter(r => !r || r.kind === 'unknown').length }
