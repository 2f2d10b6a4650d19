/*
 * Three drafts, five judges with different tastes, the highest mean wins.
 */
// args: "{\"brief\": \"error page for a lost connection\"}"
// expect-null: thrown
// expect-half: returned
// order: free
export const meta = {
  name: 'judge-panel',
  description: 'Write several drafts, have a panel score them, return the best',
  phases: [{ title: 'Drafts' }, { title: 'Judging' }],
}

const a = typeof args === 'string' ? JSON.parse(args) : args || {}
const voices = ['plain', 'warm', 'terse']
const judges = [
  { name: 'clarity', weight: 3 },
  { name: 'kindness', weight: 1 },
  { name: 'brevity', weight: 2 },
  { name: 'accuracy', weight: 3 },
  { name: 'accessibility', weight: 2 },
]
const SCORE = {
  type: 'object',
  required: ['score'],
  properties: { score: { type: 'number', minimum: 0, maximum: 10 }, remark: { type: 'string' } },
  additionalProperties: false,
}

phase('Drafts')
const drafts = (
  await parallel(voices.map(voice => () => agent(`In a ${voice} voice: ${a.brief}`, { label: `draft:${voice}` }).then(text => text && { voice, text })))
).filter(Boolean)
if (drafts.length === 0) throw new Error('no draft was written')

phase('Judging')
const scored = await pipeline(drafts, async draft => {
  const marks = await parallel(
    judges.map(({ name }) => () =>
      agent(`Score for ${name}, 0 to 10:\n---\n${draft.text}\n---`, { schema: SCORE, label: `${name}:${draft.voice}`, phase: 'Judging' }),
    ),
  )
  let sum = 0
  let weights = 0
  marks.forEach((mark, i) => {
    if (!mark) return
    sum += mark.score * judges[i].weight
    weights += judges[i].weight
  })
  return { ...draft, mean: weights ? Math.round((sum / weights) * 100) / 100 : null, heard: marks.filter(m => m).length }
})

const ranked = scored.filter(s => s && s.mean !== null).sort((x, y) => y.mean - x.mean || x.voice.localeCompare(y.voice))
return { best: ranked[0] ?? drafts[0], ranking: ranked.map(r => [r.voice, r.mean, r.heard]) }
