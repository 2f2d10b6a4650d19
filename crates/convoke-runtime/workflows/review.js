// review: several reviewers look at the same code, each through a lens of its own, and what they report is believed only when
// somebody who tried to refute it could not.
//
// Read it as a first lesson: a scout, a fan-out with `parallel`, a reduce in plain JavaScript, and a check of every finding with
// `pipeline`. The only agents are those you see being called; everything between them is ordinary code and costs nothing.
//
//   convoke workflow run review
//   convoke workflow run review --args '"src/"'            # there alone; a path that is not there is an error
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
if (typeof given === 'string' || Array.isArray(given)) given = { paths: [given].flat() }
// `src`, `./src/` and `src//` are one place; the directory itself means everything.
const tidy = path => path.trim().replace(/\/+/g, '/').replace(/^(\.\/)+/, '').replace(/\/$/, '')
let paths = [given?.paths ?? []].flat()
if (!paths.every(path => typeof path === 'string')) throw new Error(`paths are texts: --args '{"paths": ["src/", "lib/"]}'`)
const astray = paths.filter(path => /^\s*[/~]/.test(path) || path.split('/').includes('..'))
if (astray.length) {
  throw new Error(`only what lies below the working directory is reviewed, and ${astray.join(', ')} may not: name it from there, such as 'src/'`)
}
paths = [...new Set(paths.map(tidy).filter(path => path !== ''))]
if (paths.includes('.')) paths = []

// What was named has to be there, and that is known before anybody is paid: `sh` is Convoke's own, a command that only reads.
// It throws where there is no sandbox to run it in. Then nobody knows, and the result says so.
const quoted = text => `'${text.replaceAll("'", `'\\''`)}'`
let unsure = ''
let folders = []
let planned = false
if (paths.length) {
  const asked = paths.map((path, i) => {
    const place = quoted('./' + path)
    return `if [ -d ${place} ]; then echo folder ${i}; elif [ -e ${place} ]; then echo file ${i}; else echo missing ${i}; fi`
  })
  const told = await sh(asked.join('\n')).catch(error => {
    unsure = ` Whether these paths are there could not be looked up: ${error.message}.`
    log(unsure.trim())
    return null
  })
  const said = word => paths.filter((_, i) => (told?.output ?? '').split('\n').includes(`${word} ${i}`))
  const missing = said('missing')
  if (missing.length) throw new Error(`there is no ${missing.join(', no ')} here; nothing was reviewed. \`git ls-files\` shows what there is`)
  folders = said('folder')
  // `convoke workflow plan` answers with stubs, here too. They lie nowhere, so none is left out, or the plan would hide what
  // the verifiers cost.
  planned = told !== null && folders.length + said('file').length === 0
}
const named = paths.map(path => '`' + path + (folders.includes(path) ? '/' : '') + '`')
const where = named.length ? 'in ' + named.join(', ') : 'in the whole directory'
// An agent may look where it likes; what it says counts only where it was asked to look.
const inside = path => paths.length === 0 || planned || paths.some(one => tidy(path) === one || tidy(path).startsWith(`${one}/`))

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
const parts = [...new Set((scout?.areas ?? []).map(area => area.path))].filter(inside)
const lost = scout === null ? 'the scout died' : 'the scout named nothing'
log(parts.length ? `worth a look first: ${parts.join(', ')}` : `${lost}: the reviewers find their own way`)

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
const outside = []
for (const [i, report] of reports.entries()) {
  for (const found of report?.findings ?? []) {
    const key = `${found.path}:${found.first}:${found.claim.toLowerCase()}`
    if (seen.has(key)) continue
    seen.add(key)
    ;(inside(found.path) ? findings : outside).push({ ...found, lens: lenses[i] })
  }
}
log(`${findings.length} findings from ${lenses.length - blind.length} of ${lenses.length} lenses`)
if (outside.length) log(`${outside.length} findings lie elsewhere and were left out`)

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
const gaps =
  (blind.length ? ` Nobody looked through: ${blind.join('; ')}.` : '') +
  (outside.length ? ` ${outside.length} findings elsewhere were left out and not tested.` : '') +
  unsure
return {
  summary:
    `${confirmed.length} confirmed, ${refuted.length} refuted, ${uncertain.length} uncertain, ` +
    `${unverified.length} unverified ${where}.${gaps}`,
  confirmed,
  refuted,
  uncertain,
  unverified,
  blind,
  outside,
}
