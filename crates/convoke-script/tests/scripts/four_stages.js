// Four stages that take one, two, three and no parameters.
// args: {"files":["intro.md","setup.md","faq.md"],"language":"pt"}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'translate-docs',
  description: 'Translate, check back, polish and number the pages of a manual',
  phases: [{ title: 'Translate' }, { title: 'Check' }, { title: 'Polish' }],
}

const files = args?.files ?? []
const language = args?.language ?? 'de'
let finished = 0

const pages = await pipeline(
  files,
  file => agent(`Translate ${file} to ${language}`, { label: `translate:${file}`, phase: 'Translate' }),
  (text, file) =>
    text === null
      ? null
      : agent(`Translate back and compare with ${file}:\n${text}`, {
          label: `check:${file}`,
          phase: 'Check',
          schema: {
            type: 'object',
            required: ['faithful', 'text'],
            properties: { faithful: { type: 'boolean' }, text: { type: ['string', 'null'] }, issues: { type: 'array', items: { type: 'string' } } },
          },
        }),
  async (check, file, index) => {
    if (check === null) return { file, index, state: 'untranslated' }
    if (check.faithful) return { file, index, state: 'faithful', text: check.text }
    const polished = await agent(`Mend page ${index + 1} (${file}): ${(check.issues ?? []).join('; ')}`, { label: `polish:${file}`, phase: 'Polish' })
    return { file, index, state: polished === null ? 'draft' : 'polished', text: polished ?? check.text }
  },
  page => {
    finished += 1
    return { ...page, number: page.index + 1 }
  },
)

const single = await pipeline(files, (prev, file, index) => `${index}:${prev === file}`)
const states = new Map()
for (const page of pages) states.set(page?.state ?? 'failed', (states.get(page?.state ?? 'failed') ?? 0) + 1)
return { pages, finished, single, states: Object.fromEntries([...states].sort()) }
