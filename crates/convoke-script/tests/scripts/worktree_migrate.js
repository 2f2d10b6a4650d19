// Moves call sites from one interface to another, four at a time, each in a checkout of its own.
// args: {"from":"oldFetch","to":"request","sites":["a.ts","b.ts","c.ts","d.ts","e.ts","f.ts"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'move-calls',
  description: 'Migrate call sites in worktrees, in batches, with a check after each',
  phases: [{ title: 'Move' }, { title: 'Check' }],
}

if (!args || !args.from || !args.to) throw new Error('args must be {from, to, sites?}')
const sites = args.sites ?? []
const WIDTH = 4
const DONE = {
  type: 'object',
  required: ['branch', 'changed'],
  properties: { branch: { type: 'string' }, changed: { type: 'array', items: { type: 'string' } }, note: { type: 'string' } },
}

const moved = []
for (let start = 0; start < sites.length; start += WIDTH) {
  const batch = sites.slice(start, start + WIDTH)
  phase('Move')
  const results = await parallel(
    batch.map(site => () =>
      agent(`In ${site}, replace ${args.from} by ${args.to}. Commit on your branch and tell its name.`, {
        label: `move:${site}`,
        phase: 'Move',
        isolation: 'worktree',
        schema: DONE,
      }),
    ),
  )
  results.forEach((result, i) => moved.push({ site: batch[i], result }))
  const failed = results.filter(r => r === null).length
  log(`batch ${start / WIDTH + 1}: ${batch.length - failed} of ${batch.length} moved`)
  // A whole batch without a single success is no accident.
  if (failed === batch.length && start > 0) break
}

phase('Check')
const checked = await pipeline(
  moved.filter(m => m.result),
  m => agent(`Review branch ${m.result.branch}: is ${m.site} still correct?`, { label: `check:${m.site}`, phase: 'Check', agentType: 'Explore', schema: { type: 'object', required: ['ok'], properties: { ok: { type: 'boolean' } } } }),
  (verdict, m) => ({ site: m.site, branch: m.result.branch, state: verdict === null ? 'unchecked' : verdict.ok ? 'good' : 'bad' }),
)
const list = checked.filter(Boolean)
return { apply: list.filter(c => c.state === 'good').map(c => c.branch), list, left: sites.length - list.length }
