export const meta = {
  name: 'menu-planner',
  description: 'Plan a week of meals within a sum of money',
  phases: [{ title: 'Dishes' }, { title: 'Check' }],
}
// Here "budget" is money for food. It hides the global of the same name, and that is all it does.
// args: {"people":4,"euros":90}
// expect-null: returned
// expect-half: returned
// order: free
const budget = { euros: Number(args?.euros ?? 60), people: args?.people ?? 2 }
const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri']

const DISH = {
  type: 'object',
  required: ['dish', 'cents'],
  properties: {
    dish: { type: 'string', minLength: 1 },
    cents: { type: 'integer', minimum: 100, maximum: 1500 },
    vegetarian: { type: 'boolean' },
  },
}

phase('Dishes')
const dishes = await parallel(
  days.map(day => () => agent(`One dinner for ${budget.people} people on ${day}`, { schema: DISH, label: day })),
)
const week = days.map((day, i) => ({ day, ...(dishes[i] ?? { dish: 'leftovers', cents: 0, vegetarian: true }) }))
const cost = week.reduce((sum, d) => sum + d.cents, 0) / 100

phase('Check')
let remark = 'not checked'
try {
  remark = (await agent(`Is this week balanced? ${week.map(d => d.dish).join(', ')}`, { label: 'balance' })) ?? remark
} catch (e) {
  remark = `not checked: ${e.message}`
}
const within = cost <= budget.euros
return { week, cost, within, remark, left: within ? budget.euros - cost : 0 }
