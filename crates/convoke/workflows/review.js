// review: several reviewers look at the same code, each through a lens of its own, and what they report is believed only when
// somebody who tried to refute it could not.
//
// Read it as a first lesson: a scout, a fan-out with `parallel`, a reduce in plain JavaScript, and a check of every finding with
// `pipeline`. The only agents are those you see being called; everything between them is ordinary code and costs nothing.
//
//   convoke workflow run review
//   convoke workflow run review --args '"src/"'
//   convoke workflow run review --args '{"paths": ["src/", "lib/"], "lenses": ["Locks that are held while waiting"]}'

export const meta = {
  name: 'review',
  description: 'Reviews code through several lenses at once and tests every finding before it is believed',
  whenToUse: 'For a thorough look at a directory or a part of it, where false alarms cost more than a few agents',
  phases: [
    { title: 'Scout', detail: 'what is here and where to begin' },
    { title: 'Review', detail: 'one agent per lens' },
    { title: 'Verify', detail: 'somebody tries to refute each finding' },
  ],
}

// `args` is whatever the caller gave. A person writes a path, a program an object, and some callers hand over an object as text.
let given = args
if (typeof given === 'string' && given.trim().startsWith('{')) {
  try {
    given = JSON.parse(given)
  } catch {
    // Then it is a strange path, and the reviewers will say so.
  }
}
if (typeof given === 'string') given = { paths: [given] }
const paths = [given?.paths ?? []].flat().filter(path => typeof path === 'string' && path.trim() !== '')
const where = paths.length ? 'in ' + paths.map(path => '`' + path + '`').join(', ') : 'in the whole directory'

// A lens is one question, asked of all the code. Few and different ones find more than many that overlap.
const LENSES = [
  'Swallowed errors: failures that are caught and dropped, or never looked at',
  'Values that end in a panic or a crash when they are missing or out of range',
  'Hard-coded secrets, and input from outside that is trusted',
  'Leftover debugging aids and statements that nobody needs any more',
  'Leftover TODO and FIXME markers that name a defect',
]
const chosen = [given?.lenses ?? []].flat().filter(lens => typeof lens === 'string' && lens.trim() !== '')
const lenses = chosen.length ? chosen : LENSES

// Schemas make an agent's answer a value. Keep them flat and say in `required` what the script relies on.
const AREAS = {
  type: 'object',
  required: ['areas'],
  properties: {
    areas: {
      type: 'array',
      items: { type: 'object', required: ['path', 'why'], properties: { path: { type: 'string' }, why: { type: 'string' } } },
    },
  },
}
const FINDINGS = {
  type: 'object',
  required: ['findings', 'summary'],
  properties: {
    summary: { type: 'string', description: 'what was looked at, and what could not be' },
    findings: {
      type: 'array',
      maxItems: 8,
      items: {
        type: 'object',
        required: ['claim', 'evidence', 'severity', 'path', 'first', 'last', 'quote'],
        properties: {
          claim: { type: 'string', description: 'one statement that can be shown to be wrong' },
          evidence: { type: 'string' },
          severity: { type: 'string', enum: ['high', 'medium', 'low', 'info'] },
          path: { type: 'string' },
          first: { type: 'integer', description: 'the first line that is meant, from 1' },
          last: { type: 'integer' },
          quote: { type: 'string', description: 'what stands in the first of these lines, to the letter' },
        },
      },
    },
  },
}

// An agent that died gives null, and one that never fitted its schema throws. A scout is a help and no condition, so neither ends
// the run here.
phase('Scout')
const scout = await agent(
  `Which parts of the code ${where} deserve a review first?\nName at most eight areas by their path, with a word why. Change nothing.`,
  { schema: AREAS, label: 'scout' },
).catch(() => null)
const parts = [...new Set((scout?.areas ?? []).map(area => area.path))]
log(parts.length ? `worth a look first: ${parts.join(', ')}` : 'no scout: the reviewers find their own way')

// A barrier is right here: findings of different lenses are to be compared before anything is spent on checking them.
phase('Review')
const reports = await parallel(
  lenses.map(lens => () =>
    agent(
      `${lens} ${where}.\nLook for this alone; others look for the rest.` +
        (parts.length ? ` Begin with ${parts.join(', ')}.` : '') +
        ' Read the lines before you claim anything, and report only what you saw. Change nothing.',
      { schema: FINDINGS, label: lens.slice(0, 40), phase: 'Review' },
    ),
  ),
)
const blind = lenses.filter((_, i) => reports[i] === null)

// Two lenses often see one defect: one finding per place and claim is enough.
const seen = new Set()
const findings = []
for (const [i, report] of reports.entries()) {
  for (const found of report?.findings ?? []) {
    const key = `${found.path}:${found.first}:${found.claim.toLowerCase()}`
    if (seen.has(key)) continue
    seen.add(key)
    findings.push({ ...found, lens: lenses[i] })
  }
}
log(`${findings.length} findings from ${lenses.length - blind.length} of ${lenses.length} lenses`)

// `verify` is Convoke's own: the harness looks the citation up, then an agent that saw none of the reasoning tries to refute the
// claim. A verifier that died has refuted nothing: such a finding is unverified.
phase('Verify')
const judged = await pipeline(findings, async found => {
  const { claim, evidence, severity, path, first, last, quote } = found
  const citations = first > 0 && quote ? [{ path, first, last: Math.max(first, last), quote }] : []
  const told = await verify({ claim, evidence, severity, citations }, { label: `${path}:${first}` }).catch(() => null)
  return { ...found, verdict: told?.verdict ?? 'unverified', why: told?.evidence ?? told?.reason ?? '' }
})
const all = judged.map((one, i) => one ?? { ...findings[i], verdict: 'unverified', why: '' })

const RANK = ['high', 'medium', 'low', 'info']
const of = verdict =>
  all.filter(one => one.verdict === verdict).sort((a, b) => RANK.indexOf(a.severity) - RANK.indexOf(b.severity))
const [confirmed, refuted, uncertain] = ['confirmed', 'refuted', 'uncertain'].map(of)
const unverified = all.filter(one => ![...confirmed, ...refuted, ...uncertain].includes(one))
const missing = blind.length ? ` Nobody looked through: ${blind.join('; ')}.` : ''
return {
  summary:
    `${confirmed.length} confirmed, ${refuted.length} refuted, ${uncertain.length} uncertain, ` +
    `${unverified.length} unverified ${where}.${missing}`,
  confirmed,
  refuted,
  uncertain,
  unverified,
  blind,
}
