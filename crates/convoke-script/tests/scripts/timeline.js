// Puts an incident's events in order. Times come from outside, so new Date(value) is all that is needed.
// args: "{\"started\":\"2026-03-01T10:00:00Z\",\"sources\":[\"pager\",\"deploys\",\"chat\"]}"
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'incident-timeline',
  description: 'Collect events from several sources and write one timeline',
  phases: [{ title: 'Collect' }, { title: 'Narrate' }],
}

let input = args
if (typeof input === 'string') input = JSON.parse(input)
const started = new Date(input?.started ?? 0)
if (Number.isNaN(started.getTime())) throw new Error('started is no date')
const day = Date.UTC(started.getUTCFullYear(), started.getUTCMonth(), started.getUTCDate())

const EVENTS = {
  type: 'object',
  required: ['events'],
  properties: {
    events: {
      type: 'array',
      minItems: 2,
      items: { type: 'object', required: ['minute', 'what'], properties: { minute: { type: 'integer', minimum: 0, maximum: 240 }, what: { type: 'string' } } },
    },
  },
}

phase('Collect')
const collected = await parallel(
  input.sources.map(source => () =>
    agent(`List the events in ${source} after ${started.toISOString()}.`, { label: source, schema: EVENTS }).then(found => {
      if (!found) throw new Error(`${source} gave nothing`)
      return found.events.map(e => ({ ...e, source, at: new Date(day + e.minute * 60_000).toISOString() }))
    }),
  ),
)
const events = collected.filter(Boolean).flat().sort((a, b) => a.at.localeCompare(b.at) || a.source.localeCompare(b.source) || a.what.localeCompare(b.what))
const silent = input.sources.filter((_, i) => collected[i] === null)

phase('Narrate')
const lines = events.map(e => `${e.at.slice(11, 16)} [${e.source}] ${e.what}`)
let story = null
if (lines.length) {
  try {
    story = await agent(`Tell what happened:\n${lines.join('\n')}`, { label: 'story' })
  } catch (e) {
    log('story: ' + e.message)
  }
}
return { day: new Date(day).toISOString(), events: lines, silent, story, zone: started.getTimezoneOffset() }
