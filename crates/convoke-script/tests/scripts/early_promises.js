// Starts the slow things first, keeps their promises, and awaits them where they are needed.
// args: {"topic":"connection pool"}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'design-note',
  description: 'History and measurements are fetched while the draft is written',
  phases: [{ title: 'Gather' }, { title: 'Draft' }],
}

const topic = args?.topic || 'unnamed'
phase('Gather')
const historyPromise = agent(`Summarise the git history that concerns the ${topic}.`, { label: 'history' })
const figuresPromise = agent(`Which figures were measured for the ${topic}?`, {
  label: 'figures',
  schema: {
    type: 'object',
    required: ['figures'],
    properties: {
      figures: {
        type: 'array',
        items: { type: 'object', required: ['name', 'value'], properties: { name: { type: 'string' }, value: { type: 'number' }, unit: { type: ['string', 'null'] } } },
      },
    },
  },
})

phase('Draft')
const outline = await agent(`Outline a design note about the ${topic}.`, { label: 'outline' })
const [history, figures] = await Promise.all([historyPromise, figuresPromise])

const table = (figures?.figures ?? []).map(f => `${f.name}: ${f.value}${f.unit ? ' ' + f.unit : ''}`)
const draft = await agent(
  [`Outline:`, outline ?? '(none)', `History:`, history ?? '(none)', `Figures:`, ...table].join('\n'),
  { label: 'draft', phase: 'Draft', effort: 'high' },
)
const missing = Object.entries({ outline, history, figures, draft }).filter(([, v]) => v == null).map(([k]) => k)
return { topic, draft, figures: table.length, missing }
