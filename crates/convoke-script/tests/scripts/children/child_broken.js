export const meta = { name: 'child-broken', description: 'Does not parse' }
const x = [1, 2
return x
