export const meta = {
  name: 'onboarding-guide',
  title: 'Onboarding guide',
  description: 'Writes a first-week guide ' + 'for somebody new to a repository',
  whenToUse: `When a person joins. Takes "role" and
"level" as arguments.`,
  version: 3,
  experimental: false,
  threshold: -0.5,
  owner: null,
  examples: ['{"role":"backend"}', '{"role":"docs","level":"senior"}'],
  phases: ['Survey', 'Write'],
  'tags': [['docs', 1], ['people', 2]],
}
// args: {"role":"backend","level":"junior"}
// expect-null: returned
// expect-half: returned
// order: free
const role = args?.role ?? 'any'
const level = args?.level ?? 'any'
const chapters = ['how to build', 'where things are', 'how to test', 'whom to ask']

phase('Survey')
const survey = await parallel(
  chapters.map(chapter => () =>
    agent(`For a ${level} ${role} engineer: collect facts on "${chapter}".`, {
      label: chapter,
      phase: 'Survey',
      schema: {
        type: 'object',
        required: ['facts'],
        properties: { facts: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 4 } },
      },
    }),
  ),
)

phase('Write')
const text = []
for (const [i, facts] of survey.entries()) {
  if (!facts) {
    text.push(`## ${chapters[i]}\n(to be written)`)
    continue
  }
  // One after the other, because each chapter refers to those before it.
  const before = text.length
  let chapter = null
  try {
    chapter = await agent(`Chapter ${before + 1}, "${chapters[i]}":\n${facts.facts.map(f => `* ${f}`).join('\n')}`, { label: `write:${i}` })
  } catch {
    chapter = null
  }
  text.push(`## ${chapters[i]}\n${chapter ?? facts.facts.join('\n')}`)
}
return { role, level, guide: text.join('\n\n'), chapters: text.length }
