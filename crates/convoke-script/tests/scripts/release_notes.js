// Release notes from a list of commits: map over batches, reduce to one text.
// args: "{\"from\":\"v1.4.0\",\"to\":\"v1.5.0\",\"commits\":[\"a1 fix: parser stops at BOM\",\"b2 feat: dark theme\",\"c3 chore: bump deps\",\"d4 feat!: drop node 14\",\"e5 fix: typo\",\"f6 docs: faq\",\"g7 perf: cache globs\"]}"
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'release-notes',
  description: 'Sort commits into sections and write the notes of one release',
  whenToUse: 'When a version is about to be tagged and somebody has to say what changed',
  phases: [
    { title: 'Classify', detail: 'one agent per batch of commits' },
    { title: 'Write', detail: 'one agent for the whole text', model: 'sonnet' },
  ],
}

// Some callers hand the arguments over as text.
let input = args
if (typeof input === 'string') {
  try {
    input = JSON.parse(input)
  } catch {
    return { error: 'args is neither an object nor JSON' }
  }
}
const { from = 'start', to = 'HEAD', commits = [] } = input ?? {}
if (commits.length === 0) return { from, to, notes: '', sections: {} }

const BATCH = 3
const batches = []
for (let i = 0; i < commits.length; i += BATCH) batches.push(commits.slice(i, i + BATCH))

const CLASSIFIED = {
  type: 'object',
  additionalProperties: false,
  required: ['entries'],
  properties: {
    entries: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['commit', 'section', 'line'],
        properties: {
          commit: { type: 'string' },
          section: { type: 'string', enum: ['breaking', 'features', 'fixes', 'internal'] },
          line: { type: 'string', maxLength: 120 },
        },
      },
    },
  },
}

phase('Classify')
log(`${commits.length} commits in ${batches.length} batches`)
const classified = await parallel(
  batches.map((batch, n) => () =>
    agent(`Put each of these commits into a section:\n${batch.map(c => `- ${c}`).join('\n')}`, {
      label: `batch ${n + 1}/${batches.length}`,
      phase: 'Classify',
      schema: CLASSIFIED,
    }),
  ),
)

const entries = classified.filter(Boolean).flatMap(part => part.entries)
const sections = {}
for (const entry of entries) (sections[entry.section] ??= []).push(entry.line)
const lost = classified.filter(part => part === null).length
if (lost > 0) log(`${lost} batches were not classified; their commits are listed as they are`)

phase('Write')
let notes = null
try {
  notes = await agent(
    `Write release notes for ${from}..${to}. Sections:\n${JSON.stringify(sections, null, 2)}`,
    { label: 'notes', model: 'sonnet', effort: 'low' },
  )
} catch (e) {
  log(`writing failed: ${e.message}`)
}
return { from, to, sections, lost, notes: notes ?? Object.values(sections).flat().join('\n') }
