// Groups support tickets by what they are about and writes one answer per group.
// args: {"tickets":[{"id":1,"text":"cannot log in","plan":"pro"},{"id":2,"text":"invoice is wrong"},{"id":3,"text":"password reset mail never comes","plan":"free"},{"id":4,"text":"charged twice","plan":"pro"},{"id":5,"text":"app is slow"}]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'ticket-clusters',
  description: 'Tag tickets, group them, draft an answer for each group',
  phases: [{ title: 'Tag' }, { title: 'Answer' }],
}

const tickets = (args?.tickets ?? []).map(t => ({ plan: 'unknown', ...t }))
const TAG = {
  type: 'object',
  required: ['topic'],
  properties: {
    topic: { type: 'string', enum: ['login', 'billing', 'speed', 'other'] },
    mood: { type: 'integer', minimum: -2, maximum: 2 },
  },
}

phase('Tag')
const tags = await parallel(tickets.map(t => () => agent(`Tag this ticket: ${t.text}`, { schema: TAG, label: `ticket ${t.id}` })))

const groups = new Map()
tickets.forEach((ticket, i) => {
  const topic = tags[i]?.topic ?? 'untagged'
  const group = groups.get(topic) ?? groups.set(topic, []).get(topic)
  group.push({ ...ticket, mood: tags[i]?.mood ?? null })
})
const ordered = [...groups.entries()].sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1))

phase('Answer')
const answers = await pipeline(
  ordered,
  ([topic, members]) =>
    topic === 'untagged'
      ? null
      : agent(`Draft one answer to ${members.length} tickets about ${topic}:\n${members.map(m => `#${m.id} ${m.text}`).join('\n')}`, {
          label: `answer:${topic}`,
          phase: 'Answer',
        }),
  (draft, [topic, members]) => ({
    topic,
    ids: members.map(m => m.id),
    pro: members.some(m => m?.plan === 'pro'),
    worst: members.map(m => m.mood).filter(m => m !== null).reduce((low, m) => Math.min(low, m), Infinity),
    draft: draft ?? `(a person must answer ${members.length})`,
  }),
)
const byTopic = Object.fromEntries(answers.filter(Boolean).map(({ topic, ...rest }) => [topic, { ...rest, worst: Number.isFinite(rest.worst) ? rest.worst : null }]))
return { groups: ordered.length, byTopic }
