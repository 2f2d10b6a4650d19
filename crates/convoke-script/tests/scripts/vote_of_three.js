// Three voters are asked in exactly the same words; two of three decide.
// args: {"claims":["the cache is never invalidated","the lock is taken twice","the retry has no bound"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'vote-of-three',
  description: 'Each claim is put to three voters who do not know of each other',
  phases: [{ title: 'Vote' }],
}

const VOTE = {
  type: 'object',
  required: ['holds', 'because'],
  properties: { holds: { type: 'boolean' }, because: { type: 'string' } },
}
const claims = args?.claims ?? []
phase('Vote')
const verdicts = await pipeline(claims, async claim => {
  const prompt = `Try to refute this claim. Claim: ${claim}`
  const votes = await parallel(Array.from({ length: 3 }, () => () => agent(prompt, { schema: VOTE, phase: 'Vote' })))
  const cast = votes.filter(v => v !== null)
  const yes = cast.filter(v => v.holds).length
  // Voters who could not look have not voted against anything.
  const verdict = cast.length < 2 ? 'unverified' : yes * 2 > cast.length ? 'confirmed' : yes * 2 === cast.length ? 'uncertain' : 'refuted'
  return { claim, verdict, yes, no: cast.length - yes, silent: votes.length - cast.length }
})
const tally = {}
for (const { verdict } of verdicts) tally[verdict] = (tally[verdict] ?? 0) + 1
log(Object.entries(tally).map(([k, n]) => `${n} ${k}`).join(', '))
return { verdicts, tally }
