// The smallest useful kind: a plain string in, three views, one answer.
// args: "Should the parser be rewritten?"
// expect-null: thrown
// expect-half: thrown
// order: free
export const meta = {
  name: 'three-views',
  description: 'Ask three people with different interests, then decide',
}

const question = typeof args === 'string' ? args.trim() : JSON.stringify(args)
const roles = { maintainer: 'keeps it running', user: 'uses it daily', newcomer: 'reads it for the first time' }

const views = await parallel(
  Object.entries(roles).map(([role, who]) => () =>
    agent(`You are somebody who ${who}. ${question} Two sentences.`, { label: role, phase: 'Views' }),
  ),
)
// If nobody said anything there is nothing to decide, and this line fails on purpose of nobody.
const longest = views.filter(Boolean).reduce((a, b) => (a.length >= b.length ? a : b))

const decision = await agent(`Decide "${question}" from:\n${views.map((v, i) => `${Object.keys(roles)[i]}: ${v}`).join('\n')}`, {
  label: 'decide',
  phase: 'Decision',
  schema: {
    type: 'object',
    required: ['decision', 'confidence'],
    properties: { decision: { type: 'string', enum: ['yes', 'no', 'later'] }, confidence: { type: 'number', minimum: 0, maximum: 1 } },
  },
})
const { decision: what, confidence } = decision
return { question, what, confidence, longest: longest.length, views: views.length }
