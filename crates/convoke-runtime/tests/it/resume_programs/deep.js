// A program that nests as deeply as people nest them: a pipeline over areas, parallel over lenses, parallel over places, equal
// prompts for the votes, a set that every stage shares, one agent that dies early, and a reduce step over everything. Every
// answer stands in the value at the place of its question.
export const meta = {
  name: 'deep',
  description: 'looks at every area through every lens and has it voted on',
  phases: [{title: 'scout'}, {title: 'look'}, {title: 'vote'}, {title: 'reduce'}],
}
const areas = Array.from({length: args.areas}, (_, i) => i)
const seen = new Set()
const look = (area, lens, place) => {
  seen.add(`${area}.${lens}`)
  return agent(`look ${area} ${lens} ${place}`, {phase: 'look'})
}
const [early, found] = await parallel([
  () => agent('doomed', {label: 'the early one'}),
  () => pipeline(
    areas,
    area => agent(`scout ${area}`, {phase: 'scout'}),
    async (scouted, area) => ({
      scouted,
      looked: await parallel([0, 1].map(lens => () => parallel([0, 1, 2].map(place => () => look(area, lens, place))))),
    }),
    async (so_far, area) => ({
      ...so_far,
      votes: await parallel([1, 2, 3].map(() => () => agent(`vote ${area % 2}`, {phase: 'vote'}))),
    }),
  ),
])
phase('reduce')
const all = [...seen].sort()
const reduced = await agent(`reduce ${all.length} of ${found.filter(Boolean).length}`)
return {early, found, all, reduced}
