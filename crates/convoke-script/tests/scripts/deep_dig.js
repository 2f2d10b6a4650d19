// A question is split into angles; every angle is searched, its sources are fetched once each and weighed.
// args: "Which sort algorithm do the standard libraries of today use, and why?"
// expect-null: returned
// expect-half: returned
// order: bound
export const meta = {
  name: 'deep-dig',
  description: 'Search from several angles, read every source once, weigh what it claims',
  phases: [{ title: 'Split' }, { title: 'Search' }, { title: 'Read' }, { title: 'Conclude' }],
}

const question = typeof args === 'string' ? args : args?.question
if (!question) throw new Error('give a question as args')
const MAX_SOURCES = 6

const ANGLES = {
  type: 'object',
  required: ['angles'],
  properties: { angles: { type: 'array', minItems: 2, maxItems: 3, items: { type: 'object', required: ['query'], properties: { query: { type: 'string' }, why: { type: 'string' } } } } },
}
const HITS = {
  type: 'object',
  required: ['hits'],
  properties: { hits: { type: 'array', maxItems: 4, items: { type: 'object', required: ['url'], properties: { url: { type: 'string' }, title: { type: 'string' } } } } },
}
const CLAIMS = {
  type: 'object',
  required: ['claims', 'quality'],
  properties: {
    claims: { type: 'array', items: { type: 'string' } },
    quality: { enum: ['primary', 'secondary', 'blog', 'unreliable'] },
  },
}

// Two spellings of one address are one source.
const seen = new Set()
let slots = MAX_SOURCES
const normalise = raw => {
  try {
    const u = new URL(raw)
    return `${u.hostname.replace(/^www\./, '')}${u.pathname.replace(/\/$/, '')}`.toLowerCase()
  } catch {
    return String(raw).toLowerCase()
  }
}
const hostOf = raw => {
  try {
    return new URL(raw).hostname
  } catch {
    return 'unknown'
  }
}

phase('Split')
let plan = null
try {
  plan = await agent(`Split into search angles: ${question}`, { schema: ANGLES, label: 'split' })
} catch { /* one angle is the question itself */ }
const angles = plan?.angles?.length ? plan.angles : [{ query: question, why: 'as asked' }]

const read = await pipeline(
  angles,
  angle => agent(`Search the web for: ${angle.query}`, { schema: HITS, phase: 'Search', label: `search:${angle.query.slice(0, 20)}` }),
  async (found, angle) => {
    const fresh = (found?.hits ?? []).filter(hit => {
      const key = normalise(hit.url)
      if (seen.has(key) || slots <= 0) return false
      seen.add(key)
      slots -= 1
      return true
    })
    return parallel(
      fresh.map(hit => () =>
        agent(`Read ${hit.url} and list what it claims about: ${angle.query}`, {
          schema: CLAIMS,
          phase: 'Read',
          label: `read:${hostOf(hit.url)}`,
        }).then(claims => claims && { ...claims, url: hit.url }),
      ),
    )
  },
)

const sources = read.flat().filter(Boolean)
const claims = sources.flatMap(s => s.claims.map(text => ({ text, url: s.url, quality: s.quality })))
phase('Conclude')
const answer = claims.length
  ? await agent(`Answer "${question}" from these claims only:\n${claims.map((c, i) => `${i + 1}. [${c.quality}] ${c.text}`).join('\n')}`, { label: 'conclude' }).catch(() => null)
  : null
return { question, answer, sources: sources.length, angles: angles.length, unanswered: answer === null }
