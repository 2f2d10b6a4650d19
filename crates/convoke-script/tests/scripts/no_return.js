// Only leaves marks behind: there is no return, and the last expression is no result.
// args: {"labels":["bug","question","spam"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'label-issues',
  description: 'Put a label on every open issue; returns nothing',
  phases: [{ title: 'Label' }],
}

const labels = args?.labels ?? ['bug']
const issues = [
  { id: 11, title: 'Crash when the file is empty' },
  { id: 12, title: 'How do I set the port?' },
  { id: 13, title: 'BUY CHEAP WATCHES' },
  { id: 14, title: 'Crash on exit' },
]

phase('Label')
const done = await parallel(
  issues.map(issue => () =>
    agent(`Choose one label for "${issue.title}" and set it with the tracker's command.`, {
      label: `#${issue.id}`,
      schema: {
        type: 'object',
        required: ['label'],
        properties: { label: { type: 'string', enum: labels }, sure: { type: 'boolean' } },
      },
    }),
  ),
)

done.forEach((result, i) => {
  const { id } = issues[i]
  if (!result) log(`#${id}: left alone`)
  else log(`#${id}: ${result.label}${result.sure ? '' : ' (unsure)'}`)
})
const summary = { labelled: done.filter(Boolean).length, of: issues.length }
summary
