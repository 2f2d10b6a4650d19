// Every module is read, then looked at through every lens, and every lens asks two people.
// args: {"modules":["auth","billing","mail"],"lenses":["races","errors"]}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'nested-fan',
  description: 'Module by module: read, then every lens in parallel, every lens twice',
  phases: [{ title: 'Read' }, { title: 'Look' }],
}

const modules = args?.modules ?? ['core']
const lenses = args?.lenses ?? ['errors']
const OPINION = {
  type: 'object',
  required: ['serious', 'note'],
  properties: { serious: { type: 'boolean' }, note: { type: 'string' } },
}

const perModule = await pipeline(
  modules,
  name => agent(`Read the module ${name} and say what it is for.`, { label: `read:${name}`, phase: 'Read' }),
  async (purpose, name, index) => {
    const looks = await parallel(
      lenses.map(lens => async () => {
        const pair = await parallel(
          ['first', 'second'].map(who => () =>
            agent(`As the ${who} reader, look at ${name} (${purpose ?? 'purpose unknown'}) for ${lens}.`, {
              label: `${lens}:${name}:${who}`,
              phase: 'Look',
              schema: OPINION,
            }),
          ),
        )
        const heard = pair.filter(Boolean)
        return {
          lens,
          heard: heard.length,
          agreed: heard.length === 2 && heard[0].serious === heard[1].serious,
          notes: heard.map(o => o.note),
        }
      }),
    )
    return { name, index, purpose, looks: looks.filter(Boolean) }
  },
)

const kept = perModule.filter(Boolean)
const rows = kept.map(m => [m.name, m.looks.reduce((sum, l) => sum + l.heard, 0)])
log(`heard ${rows.reduce((sum, [, n]) => sum + n, 0)} of ${modules.length * lenses.length * 2} readers`)
return { modules: kept, dropped: modules.length - kept.length, table: Object.fromEntries(rows) }
