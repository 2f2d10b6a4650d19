// Written as one in five real scripts is: a null agent is a TypeError of its own making.
// args: {"service":"checkout"}
// expect-null: thrown
// expect-half: thrown
// order: free
export const meta = {
  name: 'capacity-plan',
  description: 'Estimate load, then size the machines',
  phases: [{ title: 'Estimate' }, { title: 'Size' }],
}

const LOAD = {
  type: 'object',
  required: ['peak', 'mean'],
  properties: { peak: { type: 'number', minimum: 100, maximum: 5000 }, mean: { type: 'number', minimum: 10, maximum: 90 } },
}
const SIZE = {
  type: 'object',
  required: ['machines', 'cost'],
  properties: { machines: { type: 'integer', minimum: 1, maximum: 40 }, cost: { type: 'number', minimum: 0 } },
}

phase('Estimate')
const load = await agent(`Estimate requests per second of ${args.service}`, { schema: LOAD, label: 'load' })
const ratio = load.peak / load.mean
log(`peak to mean: ${ratio.toFixed(1)}`)

phase('Size')
const sizes = await parallel(
  ['small', 'medium', 'large'].map(kind => () =>
    agent(`How many ${kind} machines for ${Math.round(load.peak)} requests per second?`, { schema: SIZE, label: kind }),
  ),
)
const cheapest = sizes.reduce((a, b) => (a.cost <= b.cost ? a : b))
const safe = sizes.map(s => s.machines).every(n => n > 0)
return { ratio: Math.round(ratio * 10) / 10, cheapest: cheapest.machines, safe }
