// A stage that has nothing returns null, and the next one makes a record of that instead of losing the item.
// args: {"pages":["/","/login","/cart","/help"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'a11y-audit',
  description: 'Audit pages for accessibility and keep a record of every page, audited or not',
  phases: [{ title: 'Audit' }, { title: 'Mend' }],
}

const pages = args?.pages ?? ['/']
const ISSUES = {
  type: 'object',
  required: ['issues'],
  properties: {
    issues: {
      type: 'array',
      items: {
        type: 'object',
        required: ['rule', 'impact'],
        properties: { rule: { type: 'string', enum: ['alt', 'contrast', 'focus', 'label'] }, impact: { type: 'integer', minimum: 1, maximum: 4 } },
      },
    },
  },
}
const stages = { entered: 0, skipped: 0 }

const records = await pipeline(
  pages,
  // A broken audit is null for the next stage, not the end of the page.
  page => agent(`Audit ${page}`, { schema: ISSUES, label: page, phase: 'Audit' }).catch(() => null),
  (audit, page) => {
    stages.entered += 1
    if (audit === null) {
      stages.skipped += 1
      return { page, status: 'skipped', issues: [] }
    }
    return { page, status: 'audited', issues: audit.issues.filter(i => i.impact >= 2) }
  },
  async record => {
    if (record.status !== 'audited' || record.issues.length === 0) return record
    const patch = await agent(`Mend on ${record.page}: ${record.issues.map(i => i.rule).join(', ')}`, { label: `mend:${record.page}`, phase: 'Mend' })
    return { ...record, patch }
  },
)

const byRule = records.filter(Boolean).flatMap(r => r.issues).reduce((acc, { rule }) => ({ ...acc, [rule]: (acc[rule] ?? 0) + 1 }), {})
return { records, byRule, stages, complete: records.every(r => r !== null && r.status === 'audited') }
