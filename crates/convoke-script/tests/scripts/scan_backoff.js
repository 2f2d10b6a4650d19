// A scan that tries again, after a pause, when an agent came back with nothing.
// args: {"dirs":["src/net","src/auth"],"tries":3}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'secret-scan',
  description: 'Look for committed secrets, with a pause after a failed try',
  phases: [{ title: 'Scan' }],
}

const dirs = Array.isArray(args?.dirs) ? args.dirs : ['.']
const tries = args?.tries ?? 2
const FOUND = {
  type: 'object',
  required: ['secrets'],
  properties: {
    secrets: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'line', 'kind'],
        properties: {
          path: { type: 'string' },
          line: { type: 'integer', minimum: 1 },
          kind: { type: 'string', enum: ['token', 'password', 'key', 'other'] },
        },
      },
    },
  },
}

// Not every harness has a timer; without one we go on at once.
const pause = ms =>
  typeof setTimeout === 'function' ? new Promise(resolve => setTimeout(resolve, ms)) : Promise.resolve()

async function stubborn(prompt, options) {
  for (let attempt = 1; attempt <= tries; attempt++) {
    let got = null
    try {
      got = await agent(attempt === 1 ? prompt : `${prompt}\n(try ${attempt})`, options)
    } catch (e) {
      log(`${options.label}: ${e.message}`)
    }
    if (got !== null) return { got, attempt }
    if (attempt < tries) await pause(1000 * 2 ** attempt)
  }
  return { got: null, attempt: tries }
}

phase('Scan')
const scans = await parallel(
  dirs.map(dir => () => stubborn(`Look for secrets below ${dir}.`, { label: `scan:${dir}`, schema: FOUND, phase: 'Scan' })),
)
const secrets = scans.filter(s => s?.got).flatMap(s => s.got.secrets)
const kinds = {}
for (const { kind } of secrets) kinds[kind] = (kinds[kind] || 0) + 1

// A timer that is cleared never fires.
let fired = false
if (typeof setTimeout === 'function') {
  const timer = setTimeout(() => { fired = true }, 5)
  clearTimeout(timer)
}
return { secrets, kinds, attempts: scans.map(s => s?.attempt ?? 0), unscanned: scans.filter(s => !s?.got).length, fired }
