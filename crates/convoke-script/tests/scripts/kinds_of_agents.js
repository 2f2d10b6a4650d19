// Uses named kinds of agents, plugin names included, and passes an option that only its author's harness knows.
// args: {"area":"payments"}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'kinds-of-agents',
  description: 'The right kind of agent for each part of a review',
  phases: [{ title: 'Look' }, { title: 'Sum up' }],
}

const area = args?.area ?? 'all'
const REPORT = {
  type: 'object',
  required: ['issues'],
  properties: {
    issues: {
      type: 'array',
      items: {
        type: 'object',
        required: ['title'],
        properties: { title: { type: 'string' }, blocking: { type: 'boolean' } },
      },
    },
  },
}
const crew = [
  { agentType: 'Explore', task: 'map the entry points' },
  { agentType: 'general-purpose', task: 'read the error paths' },
  { agentType: 'quality:threat-modeller', task: 'list what an attacker would try' },
  { agentType: undefined, task: 'look for missing tests' },
]

phase('Look')
const reports = await parallel(
  crew.map(({ agentType, task }, i) => () =>
    agent(`In ${area}: ${task}.`, {
      agentType,
      label: agentType ?? 'plain',
      schema: REPORT,
      tools: i === 0 ? ['Read', 'Grep'] : undefined,
      _predispatch: { queue: 'slow' },
      adapter: 'none',
    }),
  ),
)

phase('Sum up')
const issues = reports.flatMap((r, i) => (r?.issues ?? []).map(issue => ({ ...issue, from: crew[i].agentType ?? 'plain' })))
const unique = [...new Map(issues.map(i => [i.title, i])).values()]
const blocking = unique.filter(i => i.blocking)
const text = await agent(`Sum up ${unique.length} issues, ${blocking.length} of them blocking.`, { label: 'sum up' }).catch(() => null)
return { unique, blocking: blocking.length, missing: reports.filter(r => !r).length, text }
