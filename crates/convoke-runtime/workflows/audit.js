// audit: look for one kind of defect again and again, from different sides, until two rounds bring nothing new.
//
// Read it as a lesson about loops. Nobody knows beforehand how much there is to find, so the script asks until it stops paying:
// it remembers what is known in a Map, tells the next round, and keeps an eye on the budget while it does.
//
//   convoke workflow run audit --args '"errors that are swallowed"'
//   convoke workflow run audit --args '{"goal": "races between the cache and its writers", "rounds": 6, "finders": 3}'

export const meta = {
  name: 'audit',
  description: 'Hunts for one kind of defect in rounds until two of them find nothing new, then tests what was found',
  whenToUse: 'When it matters that nothing of one kind is left over, and nobody knows how much of it there is',
  phases: [
    { title: 'Hunt', detail: 'rounds of finders that know what is known' },
    { title: 'Verify', detail: 'somebody tries to refute each finding' },
  ],
}

let given = args
if (typeof given === 'string' && given.trim().startsWith('{')) {
  try {
    given = JSON.parse(given)
  } catch {
    // Then the text itself is the goal.
  }
}
if (typeof given === 'string') given = { goal: given }
const goal = given?.goal ?? 'Leftover TODO and FIXME markers that name a defect'
const most = Math.min(Math.max(Number(given?.rounds) || 8, 1), 20)
const width = Math.min(Math.max(Number(given?.finders) || 2, 1), 6)

// Finders that start in the same place find the same things. Each begins somewhere else.
const SIDES = [
  'Begin with the files that change most often.',
  'Begin at the edges: where data comes in and goes out.',
  'Begin with the oldest and the smallest files.',
  'Begin with what is called from many places.',
  'Begin with the tests: what do they leave out?',
  'Begin with a search for the words that such places have in common.',
]

const FINDINGS = {
  type: 'object',
  required: ['findings'],
  properties: {
    findings: {
      type: 'array',
      maxItems: 8,
      items: {
        type: 'object',
        required: ['claim', 'evidence', 'severity', 'path', 'first', 'last', 'quote'],
        properties: {
          claim: { type: 'string' },
          evidence: { type: 'string' },
          severity: { type: 'string', enum: ['high', 'medium', 'low', 'info'] },
          path: { type: 'string' },
          first: { type: 'integer' },
          last: { type: 'integer' },
          quote: { type: 'string', description: 'what stands in the first of these lines, to the letter' },
        },
      },
    },
  },
}

// A round is worth about this many output tokens; with less left the rest is kept for the verifiers.
const ROUND = 8000 * width
const canGoOn = () => budget.total === null || budget.remaining() > ROUND * 2

// A finder that died has not looked, so a round with one of them is never a dry one, whatever the others brought. The next round
// looks again, but not for ever: so many rounds in a row that are not whole, and it ends without a conclusion.
const PATIENCE = 3

const known = new Map()
let round = 0
let dry = 0
let gaps = 0
let dead = 0
let why = 'two rounds in which every finder looked found nothing new'
while (dry < 2) {
  if (round >= most) {
    why = `the limit of ${most} rounds was reached`
    break
  }
  if (!canGoOn()) {
    why = `the budget allows no further round (${budget.remaining()} tokens left)`
    break
  }
  round += 1
  phase('Hunt')
  // What is known goes into the prompt by place, not by claim: that is short, and nobody is tempted to repeat it in other words.
  const places = [...known.values()].map(one => `${one.path}:${one.first}`)
  const found = await parallel(
    Array.from({ length: width }, (_, i) => () =>
      agent(
        `${goal}\n${SIDES[(round - 1 + i) % SIDES.length]} Report every place you find, with the line and what stands there. Change nothing.` +
          (places.length ? `\nThese places are known; report others:\n${places.join('\n')}` : ''),
        { schema: FINDINGS, label: `round ${round}, finder ${i + 1}`, phase: 'Hunt' },
      ),
    ),
  )
  let fresh = 0
  for (const one of found.flatMap(report => report?.findings ?? [])) {
    const key = `${one.path}:${one.first}`
    if (known.has(key)) continue
    known.set(key, { ...one, round })
    fresh += 1
  }
  const looked = found.filter(Boolean).length
  const whole = looked === width
  if (fresh > 0) dry = 0
  else if (whole) dry += 1
  gaps = whole ? 0 : gaps + 1
  dead += width - looked
  log(
    `round ${round}: ${fresh} new from ${looked} of ${width} finders, ${known.size} in all` +
      (whole || fresh > 0 ? '' : '; not everybody looked, so this says nothing'),
  )
  if (gaps >= PATIENCE) {
    why = `finders died in ${gaps} rounds in a row, so nobody knows what is left`
    break
  }
}
log(`ended after ${round} rounds: ${why}`)

phase('Verify')
const findings = [...known.values()]
const judged = await pipeline(findings, async found => {
  const { claim, evidence, severity, path, first, last, quote } = found
  const citations = first > 0 && quote ? [{ path, first, last: Math.max(first, last), quote }] : []
  // Past the budget, agents are refused by an exception: the finding is then unverified, and not lost.
  const told = await verify({ claim, evidence, severity, citations }, { label: `${path}:${first}` }).catch(() => null)
  return { ...found, verdict: told?.verdict ?? 'unverified', why: told?.evidence ?? told?.reason ?? '' }
})
const all = judged.map((one, i) => one ?? { ...findings[i], verdict: 'unverified', why: '' })
const of = verdict => all.filter(one => one.verdict === verdict)

const open = all.filter(one => !['confirmed', 'refuted'].includes(one.verdict))
return {
  summary:
    `${of('confirmed').length} confirmed, ${of('refuted').length} refuted, ${open.length} open after ${round} rounds; ` +
    `ended because ${why}.` +
    (dead > 0 ? ` ${dead} finders died and did not look.` : ''),
  goal,
  rounds: round,
  dry: dry >= 2,
  dead,
  confirmed: of('confirmed'),
  refuted: of('refuted'),
  open,
}
