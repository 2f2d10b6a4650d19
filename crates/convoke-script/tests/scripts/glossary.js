// Collects the terms of a product in several scripts and has each translated.
// args: {"text":"Der <<Speicher>> ist voll. 日本 <<端末>> and <<Kaffee>> für <<Zürich>>, <<Speicher>> again.","languages":["en","fr"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'glossary',
  description: 'Find marked terms, translate each into every language, keep one spelling',
  phases: [{ title: 'Translate' }, { title: 'Review' }],
}

const { text = '', languages = [] } = args ?? {}
const MARKED = /<<(?<term>[^<>]+)>>/gu
const terms = [...new Set([...text.matchAll(MARKED)].map(m => m.groups.term))]
const isLatin = term => /^\p{Script=Latin}+$/u.test(term)
const slug = term => term.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase()

const TERM = {
  type: 'object',
  required: ['translation'],
  properties: {
    translation: { type: 'string', minLength: 1 },
    alternatives: { type: 'array', items: { type: 'string' }, maxItems: 3 },
    partOfSpeech: { enum: ['noun', 'verb', 'adjective', null] },
  },
}

const table = await pipeline(
  terms,
  term =>
    parallel(
      languages.map(language => async () => {
        const got = await agent(`Translate the term "${term}" to ${language}; it is part of a user interface.`, {
          label: `${slug(term)}→${language}`,
          phase: 'Translate',
          schema: TERM,
        })
        return got && { language, ...got }
      }),
    ),
  (translations, term) => ({
    term,
    latin: isLatin(term),
    length: [...term].length,
    translations: translations.filter(Boolean),
  }),
)

const complete = table.filter(row => row?.translations.length === languages.length)
phase('Review')
const review = complete.length
  ? await agent(`Review for consistency: ${complete.map(r => `${r.term}: ${r.translations.map(t => t.translation).join('/')}`).join('; ')}`, { label: 'review' }).catch(() => null)
  : null
return { terms: terms.length, table, complete: complete.length, reviewed: review !== null, emoji: '👍🏽'.length }
