// Refuses to start without what it needs, in words of its own.
// args: {"course":"Rust for embedded people","weeks":3,"audience":{"level":"intermediate"}}
// expect-null: returned
// expect-half: returned
// expect-no-args: thrown
// order: free
export const meta = {
  name: 'syllabus',
  description: 'Plan a course week by week',
  phases: [{ title: 'Plan' }, { title: 'Exercises' }],
}

class MissingArgument extends Error {
  constructor(name) {
    super(`args.${name} is required`)
    this.name = 'MissingArgument'
    this.argument = name
  }
}
const need = name => {
  if (args?.[name] === undefined) throw new MissingArgument(name)
  return args[name]
}
const course = need('course')
const weeks = Math.min(need('weeks'), 8)
const level = args.audience?.level ?? 'any'

const WEEK = {
  type: 'object',
  required: ['theme', 'topics'],
  properties: { theme: { type: 'string' }, topics: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 3 } },
}
const plan = []
phase('Plan')
for (let week = 1; week <= weeks; week++) {
  const previous = plan.map(p => p.theme).join(' → ') || 'nothing'
  const got = await agent(`Week ${week} of "${course}" (${level}). So far: ${previous}.`, { schema: WEEK, label: `week ${week}` }).catch(() => null)
  plan.push(got ?? { theme: `week ${week}, open`, topics: [] })
}

phase('Exercises')
const exercises = await pipeline(
  plan,
  (week, _, index) =>
    week.topics.length === 0
      ? []
      : parallel(week.topics.map(topic => () => agent(`An exercise on ${topic}`, { label: `w${index + 1}: ${topic}`, phase: 'Exercises' }))),
  list => list.filter(text => typeof text === 'string'),
)
return { course, weeks: plan.map((p, i) => ({ ...p, exercises: exercises[i]?.length ?? 0 })) }
