export const meta = { name: 'child-count', description: 'Counts something in the parts of one package', phases: [{ title: 'Count' }] }
phase('Count')
const NUMBER = { type: 'object', required: ['count'], properties: { count: { type: 'integer', minimum: 0, maximum: 99 } } }
const counts = await parallel(args.parts.map(part => () => agent(`Count the TODO comments in ${args.package}/${part}`, { schema: NUMBER, label: `${args.package}/${part}` })))
const good = counts.filter(Boolean)
if (good.length === 0) throw new Error(`nobody could count in ${args.package}`)
return { total: good.reduce((sum, c) => sum + c.count, 0), parts: good.length }
