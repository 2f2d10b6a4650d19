// Which tests fail now and then, and is the reason that was found the real one? Uses the three calls that are Convoke's own.
// args: {"suite":"it","ask":true}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'flake-hunt',
  description: 'List suspicious tests, explain each, have the explanation checked',
  phases: [{ title: 'List' }, { title: 'Explain' }, { title: 'Verify' }],
}

phase('List')
let listing = null
try {
  listing = await sh(`grep -rln "sleep(" tests/${args?.suite ?? 'it'}`)
} catch (e) {
  log(`no listing: ${e.message}`)
}
const text = typeof listing === 'string' ? listing : listing?.stdout ?? ''
const files = text.split('\n').map(l => l.trim()).filter(Boolean).slice(0, 4)
if (!files.length) files.push('tests/unknown')

const WHY = {
  type: 'object',
  required: ['claim', 'evidence'],
  properties: {
    claim: { type: 'string' },
    evidence: { type: 'string' },
    severity: { type: 'string', enum: ['low', 'medium', 'high'] },
  },
}

phase('Explain')
const explained = await pipeline(
  files,
  file => agent(`Why could a test in ${file} be flaky?`, { schema: WHY, label: file, phase: 'Explain' }),
  async (finding, file) => {
    if (!finding) return { file, verdict: 'unverified' }
    const verdict = await verify(finding, { voters: 2, label: `verify:${file}` }).catch(() => null)
    return { file, claim: finding.claim, verdict: verdict?.verdict ?? 'unverified' }
  },
)

const kept = explained.filter(Boolean)
let answer = 'not asked'
if (args?.ask && kept.some(k => k.verdict === 'confirmed')) {
  answer = await checkpoint(`Quarantine ${kept.length} tests?`).catch(() => 'nobody answered')
}
return { files: files.length, kept, answer }
